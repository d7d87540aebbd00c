/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PENDING_PAGES_H_INCLUDED
#define ZC_HOLDER_PENDING_PAGES_H_INCLUDED

#include <cstdint>
#include <map>
#include <optional>

namespace zc::holder {

/** A run of a rank's pages, and where in a store they lie. */
struct stored_pages {
    std::uint64_t address, bytes, from;
};

/**
 * Pages that a restored rank is still to get, as its address space is now: what it unmaps it does
 * not get, and what it moves it gets where it is then. All numbers are multiples of a page.
 */
class pending_pages {
  public:
    void add(const stored_pages &run);
    bool is_empty() const noexcept { return pieces_.empty(); }
    /** Where in the store the page at @address lies. */
    std::optional<std::uint64_t> find(std::uint64_t address) const;
    /** Whether some of them are there. */
    bool has_any(std::uint64_t address, std::uint64_t bytes) const;
    /** The first of them, at most so many bytes; there is one. */
    stored_pages first(std::uint64_t most) const;
    /** It has them, or needs them no more. */
    void drop(std::uint64_t address, std::uint64_t bytes);
    /** As mremap(2): those at @address are at @to then. */
    void move(std::uint64_t address, std::uint64_t to, std::uint64_t bytes);

  private:
    struct piece {
        std::uint64_t end, from;
    };
    void split(std::uint64_t at);
    std::map<std::uint64_t, piece> pieces_; /* by address; none overlaps another */
};

} // namespace zc::holder

#endif
