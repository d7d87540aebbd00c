/* SPDX-License-Identifier: BSD-3-Clause */
#include "vma.h"

#include "kernel.h"
#include "proc_ioctl.h"
#include "proc_text.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace zc {

void vma_pieces::clip(range r)
{
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; i++) {
        range part = intersection(items_[i], r);
        if (!part.empty())
            items_[kept++] = part;
    }
    count_ = kept;
}

zc_reason_t vma_objection(const vma &area)
{
    if (area.special)
        return ZC_REASON_STACK;
    if (area.hugetlb)
        return ZC_REASON_HUGETLB;
    if (area.shared)
        return ZC_REASON_SHARED;
    if (area.file)
        return ZC_REASON_FILE;
    /* Mappings change places with the pool's, which are not executable: the user's would
     * cease to be so, and the next buffer's would become so. The module refuses it, too. */
    if (!area.readable || !area.writable || area.executable)
        return ZC_REASON_READ_ONLY;
    return ZC_REASON_NONE;
}

/* Anonymous memory has no name, "[heap]" or "[anon:...]"; all other bracketed
 * names are the kernel's own: [stack], [vdso], [vvar], [vsyscall], [uprobes]. */
void classify_name(std::string_view name, vma &out)
{
    out.special = name.starts_with('[') && name != "[heap]" && !name.starts_with("[anon:") &&
                  !name.starts_with("[anon_shmem:");
    out.hugetlb = out.hugetlb || name.starts_with("/anon_hugepage");
}

bool parse_maps_line(std::string_view line, vma &out)
{
    std::array<char, 160> head{};
    line.copy(head.data(), head.size() - 1);
    unsigned long begin = 0, end = 0, inode = 0;
    char perms[5] = "";
    int name_at = 0;
    if (std::sscanf(head.data(), "%lx-%lx %4s %*x %*x:%*x %lu%n", &begin, &end, perms, &inode,
                    &name_at) != 4)
        return false;
    out = {};
    out.span = {begin, end};
    out.readable = perms[0] == 'r';
    out.writable = perms[1] == 'w';
    out.executable = perms[2] == 'x';
    out.shared = perms[3] == 's';
    out.file = inode != 0;
    std::string_view name = line.substr(static_cast<std::size_t>(name_at));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    classify_name(name, out);
    return true;
}

std::vector<addr_t> mapping_starts()
{
    std::vector<addr_t> starts;
    int err = for_each_line("/proc/self/maps", [&](std::string_view line) {
        vma area;
        if (parse_maps_line(line, area))
            starts.push_back(area.span.begin);
        return true;
    });
    if (err)
        starts.clear();
    return starts;
}

address_space::address_space(features wanted) : wanted_(wanted)
{
    void *page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        throw std::bad_alloc();
    (void)madvise(page, kPage, MADV_WIPEONFORK);
    ours_ = new (page) std::atomic<int>(0);
    open_all();
}

address_space::features address_space::wanted_by_default()
{
    return {kernel.newer_ioctls, kernel.newer_ioctls, kernel.newer_ioctls};
}

address_space::~address_space()
{
    close_all();
    munmap(ours_, kPage);
}

void address_space::open_all()
{
    constexpr int kFlags = O_RDONLY | O_CLOEXEC;
    fds_.maps = open("/proc/self/maps", kFlags);
    fds_.status = open("/proc/self/status", kFlags);
    fds_.pagemap = open("/proc/self/pagemap", kFlags);

    /* Both probes ask about memory that certainly exists. */
    addr_t here = round_down(as_address(this), kPage);
    procmap_query query{};
    query.size = sizeof(query);
    query.query_addr = here;
    available_.procmap_query =
        wanted_.procmap_query && ioctl(fds_.maps, kProcmapQuery, &query) == 0;
    pagemap_scan scan{};
    scan.size = sizeof(scan);
    scan.start = here;
    scan.end = here + kPage;
    scan.category_mask = scan.return_mask = kPageIsHuge;
    available_.pagemap_scan = wanted_.pagemap_scan && ioctl(fds_.pagemap, kPagemapScan, &scan) >= 0;

    /* Asked about a part of a large folio, MADV_COLD splits it; so only where
     * the only large folios are huge pages, and those can be seen. */
    available_.cold_probe = wanted_.cold_probe && available_.pagemap_scan &&
                            !kernel_has_middle_folios() && madvise(ours_, kPage, MADV_COLD) == 0;
    ours_->store(1, std::memory_order_release);
}

void address_space::close_all()
{
    for (int *fd : {&fds_.maps, &fds_.status, &fds_.pagemap}) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
    }
}

/* A descriptor of /proc/self stays with the process that opened it: used in a
 * forked child it would answer for the parent. Descriptors are only written
 * while they are not ours, so a thread that found them ours reads them safely. */
const address_space::descriptors &address_space::fds()
{
    if (!ours_->load(std::memory_order_acquire)) {
        std::lock_guard lock(reopen_);
        if (!ours_->load(std::memory_order_relaxed)) {
            close_all();
            open_all();
        }
    }
    return fds_;
}

address_space::features address_space::available()
{
    fds();
    return available_;
}

/** The mapping covering @at. Return: 0, -ENOENT, or -errno. */
int address_space::find(addr_t at, vma &out)
{
    std::array<char, 32> name{}; /* enough to tell; longer ones are files */
    procmap_query query{};
    query.size = sizeof(query);
    query.query_addr = at;
    query.vma_name_addr = as_address(name.data());
    query.vma_name_size = name.size();
    int err = ioctl(fds().maps, kProcmapQuery, &query) == -1 ? -errno : 0;
    if (err == -ENAMETOOLONG) {
        query.vma_name_addr = 0;
        query.vma_name_size = 0;
        name[0] = '\0';
        err = ioctl(fds().maps, kProcmapQuery, &query) == -1 ? -errno : 0;
    }
    if (err)
        return err;
    out = {};
    out.span = {query.vma_start, query.vma_end};
    out.readable = query.vma_flags & kVmaReadable;
    out.writable = query.vma_flags & kVmaWritable;
    out.executable = query.vma_flags & kVmaExecutable;
    out.shared = query.vma_flags & kVmaShared;
    out.file = query.inode != 0;
    out.hugetlb = query.vma_page_size != kPage;
    classify_name(name.data(), out);
    return 0;
}

zc_reason_t address_space::walk(range r, vma_pieces &pieces)
{
    range outer;
    for (addr_t at = r.begin; at < r.end;) {
        vma area;
        int err = find(at, area);
        if (err)
            return err == -ENOENT ? ZC_REASON_UNMAPPED : ZC_REASON_SYSCALL;
        if (zc_reason_t reason = vma_objection(area))
            return reason;
        if (!pieces.add(intersection(area.span, r)))
            return ZC_REASON_MAPPING_LIMIT;
        outer = {at == r.begin ? area.span.begin : outer.begin, area.span.end};
        at = area.span.end;
    }
    pieces.set_outer(outer);
    return ZC_REASON_NONE;
}

zc_reason_t address_space::walk_text(range r, vma_pieces &pieces)
{
    addr_t at = r.begin;
    range outer;
    zc_reason_t reason = ZC_REASON_NONE;
    int err = for_each_line("/proc/self/maps", [&](std::string_view line) {
        vma area;
        if (!parse_maps_line(line, area) || area.span.end <= at)
            return true;
        if (area.span.begin > at)
            reason = ZC_REASON_UNMAPPED;
        else if (!(reason = vma_objection(area)) && !pieces.add(intersection(area.span, r)))
            reason = ZC_REASON_MAPPING_LIMIT;
        outer = {at == r.begin ? area.span.begin : outer.begin, area.span.end};
        at = area.span.end;
        return !reason && at < r.end;
    });
    if (err)
        return ZC_REASON_SYSCALL;
    pieces.set_outer(outer);
    return !reason && at < r.end ? ZC_REASON_UNMAPPED : reason;
}

namespace {

/** The number after @key in the text of /proc/self/status, in KiB; not zero
 *  either if the key is missing: what we cannot see must not be moved. */
unsigned long status_kib(const char *text, const char *key)
{
    const char *found = std::strstr(text, key);
    return found ? std::strtoul(found + std::strlen(key), nullptr, 10) : 1;
}

/* Walks the page tables of every mapping: milliseconds in a big process, so
 * only for processes that have locked memory at all. */
zc_reason_t locked_in(range r)
{
    vma area;
    bool locked = false;
    int err = for_each_line("/proc/self/smaps", [&](std::string_view line) {
        vma head;
        if (parse_maps_line(line, head)) {
            area = head;
            return area.span.begin < r.end;
        }
        if (line.starts_with("VmFlags:") && !intersection(area.span, r).empty())
            locked = locked || line.find(" lo") != line.npos;
        return !locked;
    });
    if (err)
        return ZC_REASON_SYSCALL;
    return locked ? ZC_REASON_LOCKED : ZC_REASON_NONE;
}

} // namespace

/**
 * MADV_COLD is refused for locked VMAs and otherwise a mild hint about pages
 * that are about to become ours. That is the cheapest exact answer there is:
 * asked about one page, or about a whole huge page, which it would split if
 * asked about a part.
 */
zc_reason_t address_space::locked(const vma_pieces &pieces)
{
    for (const range &piece : pieces) {
        range ask = range_at(piece.begin, kPage);
        if (huge_at(piece.begin))
            ask = range_at(round_down(piece.begin, kHuge), kHuge);
        if (madvise(as_pointer(ask.begin), ask.size(), MADV_COLD) == -1)
            return errno == EINVAL ? ZC_REASON_LOCKED : ZC_REASON_SYSCALL;
    }
    return ZC_REASON_NONE;
}

/** @nothing_locked: set if no memory of the process is. */
zc_reason_t address_space::locked_or_pinned(range r, const vma_pieces &pieces, bool allow_pinned,
                                            bool &nothing_locked)
{
    bool must_read = !allow_pinned || !available_.cold_probe;
    std::array<char, 4096> text;
    if (must_read) {
        ssize_t n = pread(fds_.status, text.data(), text.size() - 1, 0);
        if (n <= 0)
            return ZC_REASON_SYSCALL;
        text[static_cast<std::size_t>(n)] = '\0';
    }
    if (!allow_pinned && status_kib(text.data(), "VmPin:") != 0)
        return ZC_REASON_PINNED;
    /* Having read it is cheaper than to ask: the probe costs the other processors an
     * interrupt where the page had been touched. */
    nothing_locked = must_read && status_kib(text.data(), "VmLck:") == 0;
    if (nothing_locked)
        return ZC_REASON_NONE;
    return available_.cold_probe ? locked(pieces) : locked_in(r);
}

zc_reason_t address_space::examine(range r, std::uint32_t allowed, vma_pieces &pieces)
{
    pieces.clear();
    zc_reason_t reason = available().procmap_query ? walk(r, pieces) : walk_text(r, pieces);
    if (!reason && tracked(pieces))
        reason = ZC_REASON_USERFAULTFD;
    bool nothing_locked = false;
    if (!reason)
        reason = locked_or_pinned(r, pieces, allowed & ZC_FLAG_ALLOW_PINNED, nothing_locked);
    bool held = !reason && !(allowed & ZC_FLAG_ALLOW_DEVICES) &&
                drivers_.ask(!nothing_locked) != hold::none;
    return held ? ZC_REASON_DEVICE : reason;
}

/** Is the page at @at of this category? Only with PAGEMAP_SCAN. */
bool address_space::is(std::uint64_t category, addr_t at)
{
    pagemap_region found{};
    pagemap_scan scan{};
    scan.size = sizeof(scan);
    scan.start = round_down(at, kPage);
    scan.end = scan.start + kPage;
    scan.vec = as_address(&found);
    scan.vec_len = 1;
    scan.category_mask = scan.return_mask = category;
    return ioctl(fds().pagemap, kPagemapScan, &scan) > 0;
}

bool address_space::huge_at(addr_t at)
{
    return is(kPageIsHuge, at);
}

/* Has userfaultfd(2) been asked to note what is written, without a fault? To a program that
 * saves what has changed, the pages of an exchange would look unwritten. */
bool address_space::tracked(const vma_pieces &pieces)
{
    return available_.pagemap_scan && std::ranges::any_of(pieces, [&](const range &piece) {
               return is(kPageIsTracked, piece.begin);
           });
}

range address_space::without_straddling(range r, const vma_pieces &pieces)
{
    bool can_see = available().pagemap_scan;
    if (!can_see && kernel_thp_mode() == thp_mode::never)
        return r;
    /* A huge page lies inside one VMA: often that answers it without asking the kernel. */
    auto straddled = [&](addr_t inside, range area) {
        return area.contains(range_at(round_down(inside, kHuge), kHuge)) &&
               (!can_see || huge_at(inside));
    };
    range out = r;
    if (r.begin % kHuge != 0 && straddled(r.begin, pieces.first_vma()))
        out.begin = round_up(r.begin, kHuge);
    if (r.end % kHuge != 0 && straddled(r.end - kPage, pieces.last_vma()))
        out.end = round_down(r.end, kHuge);
    return out.empty() ? range{} : out;
}

bool address_space::huge_in_vmas_of(range r)
{
    constexpr std::string_view kKey = "AnonHugePages:";
    vma area;
    bool found = false;
    (void)for_each_line("/proc/self/smaps", [&](std::string_view line) {
        vma head;
        if (parse_maps_line(line, head)) {
            area = head;
            return area.span.begin < r.end;
        }
        if (line.starts_with(kKey) && !intersection(area.span, r).empty())
            found = line.find_first_of("123456789", kKey.size()) != line.npos;
        return !found;
    });
    return found;
}

address_space::huge address_space::huge_inside(range r, std::size_t max_units)
{
    range units = whole_units(r, kHuge);
    std::size_t count = units.size() / kHuge;
    if (count == 0)
        return huge::no;
    if (!available().pagemap_scan) {
        switch (kernel_thp_mode()) {
        case thp_mode::never:
            return huge::no;
        case thp_mode::always:
            return huge::yes;
        default:
            return huge::unknown;
        }
    }
    std::size_t samples = std::min(count, max_units);
    for (std::size_t i = 0; i < samples; i++) {
        std::size_t unit = samples == 1 ? 0 : i * (count - 1) / (samples - 1);
        if (huge_at(units.begin + unit * kHuge))
            return huge::yes;
    }
    return huge::no;
}

} // namespace zc
