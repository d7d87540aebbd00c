/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_COMMIT_RECORD_H_INCLUDED
#define ZC_HOLDER_COMMIT_RECORD_H_INCLUDED

#include <cstdint>
#include <optional>
#include <string>

namespace zc::holder {

/** Where the rank lives, as of its last token: written, and on the disk, before the token is given.
 */
struct commit_record {
    std::uint64_t incarnation = 0; /* the token; that of a rank that never left is 0 */
    std::string place;             /* an endpoint; empty: with its origin */
    std::string before;            /* where the other copy was, likewise; it must not live */
};

/** Replaces what was there; after a crash at any moment either is there, whole. Throws error. */
void write_record(const std::string &path, const commit_record &what);
/** Nothing, if there is none. Throws error if it cannot be read. */
std::optional<commit_record> read_record(const std::string &path);

} // namespace zc::holder

#endif
