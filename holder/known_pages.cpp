/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_pages.h"

#include <cerrno>
#include <sodium.h>

#include "error.h"

namespace zc::holder {

known_pages::known_pages()
{
    if (sodium_init() < 0)
        throw error(EIO, "libsodium cannot be used");
    static_assert(crypto_onetimeauth_poly1305_KEYBYTES == sizeof key_);
    static_assert(crypto_onetimeauth_poly1305_BYTES == sizeof(sum));
    randombytes_buf(key_.data(), key_.size());
}

known_pages::sum known_pages::sum_of(std::string_view page) const
{
    sum made;
    crypto_onetimeauth_poly1305(reinterpret_cast<unsigned char *>(made.data()),
                                reinterpret_cast<const unsigned char *>(page.data()), page.size(),
                                key_.data());
    return made;
}

std::optional<std::uint64_t> known_pages::find(std::string_view page) const
{
    const auto found = places_.find(sum_of(page));
    return found == places_.end() ? std::nullopt : std::optional(found->second);
}

bool known_pages::add(std::string_view page, std::uint64_t at)
{
    return places_.try_emplace(sum_of(page), at).second;
}

} // namespace zc::holder
