/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_pages.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <utility>

#include "error.h"
#include "openssl_library.h"

namespace zc::holder {
namespace {

constexpr std::size_t kFewest = 1 << 10; /* slots */

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

known_pages::known_pages() : summer_(drawn_key())
{
    grow_to(kFewest);
}

void known_pages::reserve(std::size_t pages)
{
    const std::size_t wanted = std::bit_ceil(std::min(pages, kMostReserved) * 3 / 2 + 1);
    if (wanted > mask_ + 1)
        grow_to(wanted);
}

/** What calloc(3) returns has no memory yet where nothing is written. */
void known_pages::grow_to(std::size_t slots)
{
    std::unique_ptr<slot[], free_memory> before(
        static_cast<slot *>(std::calloc(slots, sizeof(slot))));
    if (!before)
        throw std::bad_alloc();
    std::swap(before, slots_);
    const std::size_t count = before ? mask_ + 1 : 0;
    mask_ = slots - 1;
    for (std::size_t i = 0; i < count; i++) {
        if (before[i].place_and_one != 0)
            slot_of(before[i].sum) = before[i];
    }
}

known_pages::slot &known_pages::slot_of(const page_sum &sum) const noexcept
{
    std::size_t at = sum[0] & mask_;
    while (slots_[at].place_and_one != 0 && slots_[at].sum != sum)
        at = (at + 1) & mask_;
    return slots_[at];
}

page_sum known_pages::sum_of(std::string_view page)
{
    const page_sum sum = summer_.sum_of(page);
    __builtin_prefetch(&slots_[sum[0] & mask_], 1);
    return sum;
}

known_pages::added known_pages::add(const page_sum &sum, std::uint64_t at)
{
    if (slot &known = slot_of(sum); known.place_and_one != 0)
        return {known.place_and_one - 1, false};
    if (3 * (size_ + 1) > 2 * (mask_ + 1))
        grow_to(2 * (mask_ + 1));
    slot_of(sum) = {sum, at + 1};
    size_++;
    return {at, true};
}

std::optional<std::uint64_t> page_finder::find(std::string_view page)
{
    const std::uint64_t found = known_.slot_of(summer_.sum_of(page)).place_and_one;
    return found == 0 ? std::nullopt : std::optional(found - 1);
}

} // namespace zc::holder
