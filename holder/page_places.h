/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_PLACES_H_INCLUDED
#define ZC_HOLDER_PAGE_PLACES_H_INCLUDED

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "page_range.h"

namespace zc::holder {

/** A run of a rank's pages, and where in a store they lie. */
struct stored_pages {
    std::uint64_t address, bytes, from;
};

/**
 * Of pages of an address space: where in a store the content of each lies. Addresses and lengths
 * are multiples of a page, if nothing else is said, and those of a process, which are below 2^63. A
 * page of 4 KiB takes 8 bytes, and those of a MiB that has any take 2 KiB at least.
 */
class page_places {
  public:
    static constexpr std::uint64_t kPage = 4096;

    /** Returns whether it was not known to lie there. Throws std::bad_alloc. */
    bool set(std::uint64_t address, std::uint64_t place);
    /** Of each page of it. */
    void set(const stored_pages &run);
    bool is_empty() const noexcept { return chunks_.empty(); }
    /** Of all pages. */
    std::uint64_t bytes() const noexcept;
    /** Of any byte. */
    std::optional<std::uint64_t> find(std::uint64_t address) const;
    /** Whether some of them are known. */
    bool has_any(std::uint64_t address, std::uint64_t bytes) const;
    /** The first of all that follow each other in both, at most so many bytes; there is one. */
    stored_pages first(std::uint64_t most) const;
    /** Forgets them. */
    void drop(std::uint64_t address, std::uint64_t bytes);
    /** As mremap(2): those at @address are at @to then, and those that were there are forgotten. */
    void move(std::uint64_t address, std::uint64_t to, std::uint64_t bytes);
    /** Forgets all others. @those: in the order of their addresses. */
    void keep(const std::vector<page_range> &those);
    /** Whether all of them lie in a store of so many bytes. */
    bool lie_in(std::uint64_t bytes) const noexcept;
    /** CRC-32C of the places, in the order of the addresses. */
    std::uint32_t sum() const noexcept;

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    static constexpr std::uint64_t kChunk = 256 * kPage; /* bytes of the address space */
    struct chunk {
        chunk() { places.fill(kNone); }
        std::array<std::uint64_t, kChunk / kPage> places;
        std::size_t known = 0; /* of them; not 0 */
    };
    using chunks = std::map<std::uint64_t, chunk>; /* by address / kChunk */
    /** Calls @each(address, place) for the pages of the range that are known, in order. */
    template <class function>
    void for_each(std::uint64_t address, std::uint64_t bytes, const function &each) const;
    chunks chunks_;
};

} // namespace zc::holder

#endif
