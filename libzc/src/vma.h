/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_VMA_H_INCLUDED
#define ZC_VMA_H_INCLUDED

#include "drivers.h"
#include "page.h"
#include "zc/zc.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace zc {

/** Adjacent ranges, each within one VMA. */
class vma_pieces {
  public:
    /* A buffer in more pieces than this is cheaper to copy. */
    static constexpr std::size_t kMax = 8;

    /** False if there is no room left. */
    bool add(range r)
    {
        if (count_ == kMax)
            return false;
        items_[count_++] = r;
        return true;
    }
    void clear()
    {
        count_ = 0;
        outer_ = {};
    }
    /** Tells where the first VMA begins and the last one ends. */
    void set_outer(range r) { outer_ = r; }
    /** All of the VMA that holds the first byte, or the last. */
    range first_vma() const { return count_ > 1 ? range{outer_.begin, items_[0].end} : outer_; }
    range last_vma() const
    {
        return count_ > 1 ? range{items_[count_ - 1].begin, outer_.end} : outer_;
    }
    /** Cuts the pieces to what lies in @r. */
    void clip(range r);
    std::size_t count() const { return count_; }
    const range *begin() const { return items_.data(); }
    const range *end() const { return items_.data() + count_; }

  private:
    std::array<range, kMax> items_{};
    range outer_;
    std::size_t count_ = 0;
};

/** One mapping as the kernel describes it. */
struct vma {
    range span;
    bool readable = false;
    bool writable = false;
    bool executable = false;
    bool shared = false;
    bool file = false; /* has an inode, so not anonymous */
    bool hugetlb = false;
    bool special = false; /* the main stack, vdso and the like */
};

/** Why pages of such a mapping cannot be exchanged; ZC_REASON_NONE if they can. */
zc_reason_t vma_objection(const vma &area);

/** Units of a range to look at for huge pages where a sample will do. */
inline constexpr std::size_t kFewUnits = 4;

/**
 * address_space - asks the kernel about this process's mappings
 *
 * Nothing is remembered from one question to the next: another thread may map,
 * protect or lock memory at any time, and an answer that went stale would make
 * a rebind destroy data. Only the file descriptors asked through are kept, and
 * reopened in a forked child, where they would speak of the parent.
 *
 * Any thread.
 */
class address_space {
  public:
    /** Newer ioctls of /proc/self: optional at run time, their absence is
     *  made up for by reading text (slower) or by assuming the worst. */
    struct features {
        bool procmap_query = true; /* Linux 6.11 */
        bool pagemap_scan = true;  /* Linux 6.7 */
        bool cold_probe = true;    /* locked() by MADV_COLD; needs pagemap_scan */
    };

    /** Uses what is @wanted and available. */
    explicit address_space(features wanted);
    address_space() : address_space(wanted_by_default()) {}
    ~address_space();
    address_space(const address_space &) = delete;
    address_space &operator=(const address_space &) = delete;

    features available();

    /**
     * examine - may the pages of @r be exchanged?
     * @r:            whole pages, not empty
     * @allowed:      ZC_FLAG_ALLOW_*: what not to ask for
     * @pieces:       set to the parts of @r by VMA if the answer is yes
     */
    zc_reason_t examine(range r, std::uint32_t allowed, vma_pieces &pieces);

    /**
     * without_straddling - @r less the ends that would cut a huge page in two
     *
     * Without PAGEMAP_SCAN a huge page is assumed wherever one is possible.
     */
    range without_straddling(range r, const vma_pieces &pieces);

    enum class huge { no, yes, unknown };
    /** Are there huge pages in the 2 MiB units of @r? Looks at no more than
     *  @max_units of them, evenly spread. */
    huge huge_inside(range r, std::size_t max_units);
    /** The like from smaps: slow, and about whole VMAs. */
    static bool huge_in_vmas_of(range r);

    /** The drivers that may hold pages unseen. */
    class drivers &drivers() { return drivers_; }

  private:
    static features wanted_by_default();

    struct descriptors {
        int maps = -1;
        int status = -1;
        int pagemap = -1;
    };

    const descriptors &fds();
    void open_all();
    void close_all();
    int find(addr_t at, vma &out);
    zc_reason_t walk(range r, vma_pieces &pieces);
    zc_reason_t walk_text(range r, vma_pieces &pieces);
    zc_reason_t locked_or_pinned(range r, const vma_pieces &pieces, bool allow_pinned,
                                 bool &nothing_locked);
    zc_reason_t locked(const vma_pieces &pieces);
    bool is(std::uint64_t category, addr_t at);
    bool huge_at(addr_t at);
    bool tracked(const vma_pieces &pieces);

    features wanted_;
    features available_{};
    descriptors fds_;
    /* One page that forked children see zeroed: 1 while fds_ are this
     * process's own. Unlike a process id it costs no system call to compare. */
    std::atomic<int> *ours_ = nullptr;
    std::mutex reopen_;
    class drivers drivers_;
};

/** Start of every mapping of the process, ascending; empty if unreadable. */
std::vector<addr_t> mapping_starts();

} // namespace zc

#endif /* ZC_VMA_H_INCLUDED */
