/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls_key.h"

#include <cerrno>
#include <charconv>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "error.h"
#include "openssl_library.h"

namespace zc::holder {

tls_key tls_key::draw()
{
    tls_key made;
    if (RAND_priv_bytes_ex(openssl_library(), made.bytes_.data(), kBytes, 0) != 1)
        throw error(EIO, "OpenSSL has no random numbers");
    return made;
}

tls_key tls_key::of(const std::string &text)
{
    tls_key made;
    const char *at = text.data();
    for (unsigned char &byte : made.bytes_) {
        const bool whole = text.size() == 2 * kBytes;
        if (!whole || std::from_chars(at, at + 2, byte, 16).ptr != at + 2)
            throw error(EBADMSG, "the other host has sent no key for the image");
        at += 2;
    }
    return made;
}

tls_key::~tls_key()
{
    OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::string tls_key::text() const
{
    constexpr const char *kDigits = "0123456789abcdef";
    std::string made;
    made.reserve(2 * kBytes);
    for (const unsigned char byte : bytes_) {
        made += kDigits[byte >> 4];
        made += kDigits[byte & 15];
    }
    return made;
}

} // namespace zc::holder
