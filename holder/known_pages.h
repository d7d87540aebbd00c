/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_KNOWN_PAGES_H_INCLUDED
#define ZC_HOLDER_KNOWN_PAGES_H_INCLUDED

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

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

    static constexpr std::size_t kMostReserved = 1 << 24; /* 64 GiB */

    /** Throws error. */
    known_pages();
    struct added {
        std::uint64_t place;
        bool is_new;
    };
    /** It lies at @at from now on, if it was not known. Returns where it lies. */
    added add(std::string_view page, std::uint64_t at);
    /** For so many pages, of which each takes some 60 bytes: making room later would take a second
     * of a large rank's. */
    void reserve(std::size_t pages) { places_.reserve(std::min(pages, kMostReserved)); }
    std::size_t size() const noexcept { return places_.size(); }

  private:
    friend class page_finder;
    struct low_half {
        std::size_t operator()(const page_sum &of) const noexcept { return of[0]; }
    };
    page_summer summer_; /* which has the key */
    std::unordered_map<page_sum, std::uint64_t, low_half> places_;
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
