/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_pages.h"

#include <cerrno>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "error.h"
#include "openssl_library.h"

namespace zc::holder {
namespace {

page_key drawn_key()
{
    page_key key;
    if (RAND_bytes_ex(openssl_library(), key.data(), key.size(), 0) != 1)
        throw error(EIO, "OpenSSL has no random numbers");
    return key;
}

EVP_MAC_CTX *new_context()
{
    EVP_MAC *const poly1305 = EVP_MAC_fetch(openssl_library(), "POLY1305", nullptr);
    EVP_MAC_CTX *const made = poly1305 ? EVP_MAC_CTX_new(poly1305) : nullptr;
    EVP_MAC_free(poly1305); /* the context has it */
    if (!made)
        throw error(EIO, "OpenSSL has no Poly1305");
    return made;
}

} // namespace

void page_summer::free_context::operator()(EVP_MAC_CTX *context) const noexcept
{
    EVP_MAC_CTX_free(context);
}

page_summer::page_summer(const page_key &key) : key_(key), context_(new_context()) {}

page_sum page_summer::sum_of(std::string_view page)
{
    page_sum made;
    std::size_t length = 0;
    if (EVP_MAC_init(context_.get(), key_.data(), key_.size(), nullptr) != 1 ||
        EVP_MAC_update(context_.get(), reinterpret_cast<const unsigned char *>(page.data()),
                       page.size()) != 1 ||
        EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char *>(made.data()), &length,
                      sizeof made) != 1 ||
        length != sizeof made)
        throw error(EIO, "OpenSSL makes no sum");
    return made;
}

known_pages::known_pages() : summer_(drawn_key()) {}

known_pages::added known_pages::add(std::string_view page, std::uint64_t at)
{
    const auto [found, is_new] = places_.try_emplace(summer_.sum_of(page), at);
    return {found->second, is_new};
}

std::optional<std::uint64_t> page_finder::find(std::string_view page)
{
    const auto found = known_.places_.find(summer_.sum_of(page));
    return found == known_.places_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace zc::holder
