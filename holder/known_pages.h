/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_KNOWN_PAGES_H_INCLUDED
#define ZC_HOLDER_KNOWN_PAGES_H_INCLUDED

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <openssl/types.h>

namespace zc::holder {

using page_key = std::array<unsigned char, 32>;
using page_sum = std::array<std::uint64_t, 2>;

/** Makes the sums of pages, in one thread. */
class page_summer {
  public:
    /** Throws error. */
    explicit page_summer(const page_key &key);
    /** Of a page of known_pages::kPage bytes. Throws error. */
    page_sum sum_of(std::string_view page);
    const page_key &key() const noexcept { return key_; }

  private:
    struct free_context {
        void operator()(EVP_MAC_CTX *context) const noexcept;
    };
    page_key key_;
    std::unique_ptr<EVP_MAC_CTX, free_context> context_;
};

/**
 * Pages that the other host has already, by their content: where in its store each is.
 *
 * A page is known by its Poly1305 sum with a key that is drawn for this object and never leaves it,
 * so two pages that differ have equal sums with a probability below 2^-90, whatever is in them:
 * Bernstein, The Poly1305-AES message-authentication code (2005), theorem 3.3.
 */
class known_pages {
  public:
    static constexpr std::size_t kPage = 4096; /* as CRIU's images have them */

    static constexpr std::size_t kMostReserved = 1 << 24; /* pages: 64 GiB */

    /** Throws error. */
    known_pages();
    struct added {
        std::uint64_t place;
        bool is_new;
    };
    /** What add() needs. The processor fetches meanwhile where it will look: of a large rank that
     * is in no cache, so a caller does this for some pages before it adds the first of them. */
    page_sum sum_of(std::string_view page);
    /** The page of that sum lies at @at from now on, if it was not known. Returns where it lies. */
    added add(const page_sum &sum, std::uint64_t at);
    /** For so many pages, of which each takes 36 to 72 bytes: making room later would take a second
     * of a large rank's. Throws std::bad_alloc. */
    void reserve(std::size_t pages);
    std::size_t size() const noexcept { return size_; }

  private:
    friend class page_finder;
    /* One array, in which a page lies at its sum, or at the next free slot behind (linear probing):
     * it is found by one access to memory mostly, and taken down by one call, which matters when
     * the rank waits. Two of three slots are taken at most. */
    struct slot {
        page_sum sum;
        std::uint64_t place_and_one; /* 0: it is free */
    };
    struct free_memory {
        void operator()(slot *memory) const noexcept { std::free(memory); }
    };
    slot &slot_of(const page_sum &sum) const noexcept;
    void grow_to(std::size_t slots);
    page_summer summer_; /* which has the key */
    std::unique_ptr<slot[], free_memory> slots_;
    std::size_t mask_ = 0; /* number of slots, a power of two, minus one */
    std::size_t size_ = 0;
};

/** Finds known pages, in one thread. Several may do so at once, as long as none is added. */
class page_finder {
  public:
    /** Throws error. */
    explicit page_finder(const known_pages &known) : known_(known), summer_(known.summer_.key()) {}
    /** Of a page of kPage bytes. */
    std::optional<std::uint64_t> find(std::string_view page);

  private:
    const known_pages &known_;
    page_summer summer_;
};

} // namespace zc::holder

#endif
