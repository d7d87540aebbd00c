/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_KEYS_H_INCLUDED
#define ZC_BASE_KEYS_H_INCLUDED

#include <stdexcept>
#include <string>

namespace zc {

/** The CURVE key pair of one user's agents and holders, as Z85 text. A process that has it is one
 * of them. */
struct key_pair {
    std::string public_key;
    std::string secret_key;
};

class key_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** Where the key pair of this user is, unless it is said otherwise. */
std::string default_key_file();
key_pair make_keys();
/** A new file of mode 0600; key_error if it is there, or cannot be written. */
void write_keys(const std::string &path, const key_pair &keys);
/** key_error if it is missing, not ours, readable by others, or not a pair. */
key_pair read_keys(const std::string &path);

} // namespace zc

#endif
