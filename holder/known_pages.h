/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_KNOWN_PAGES_H_INCLUDED
#define ZC_HOLDER_KNOWN_PAGES_H_INCLUDED

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace zc::holder {

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

    known_pages();
    /** Of a page of kPage bytes. */
    std::optional<std::uint64_t> find(std::string_view page) const;
    /** It lies there from now on, if it was not known. Returns false if it was. */
    bool add(std::string_view page, std::uint64_t at);
    /** For so many pages, of which each takes some 60 bytes: making room later would take a second
     * of a large rank's. */
    void reserve(std::size_t pages) { places_.reserve(std::min(pages, kMostReserved)); }
    std::size_t size() const noexcept { return places_.size(); }

  private:
    using sum = std::array<std::uint64_t, 2>;
    struct low_half {
        std::size_t operator()(const sum &of) const noexcept { return of[0]; }
    };
    sum sum_of(std::string_view page) const;
    std::array<unsigned char, 32> key_;
    std::unordered_map<sum, std::uint64_t, low_half> places_;
};

} // namespace zc::holder

#endif
