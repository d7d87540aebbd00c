/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"
#include "exchanger.h"
#include "kernel.h"
#include "rebind.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace zc {

namespace {

/* Small enough to be populated within a millisecond, large enough to tell
 * the cost per page from the fixed cost. */
constexpr std::size_t kShort = std::size_t{64} << 10;
constexpr std::size_t kMedium = std::size_t{512} << 10;
constexpr std::size_t kShortPages = kShort / kPage, kHugePages = kHuge / kPage;
/* Only one page per table of these is populated. */
constexpr std::size_t kOneTable = kHuge;
constexpr std::size_t kTables = 8 * kHuge;
/* Even, so that landing and spare end in the roles they began with. */
constexpr int kRepeats = 4;
constexpr std::size_t kJunk = std::size_t{1} << 20;

/** Scratch memory, 2 MiB-aligned, gone at the end of the measurement. */
class scratch {
  public:
    explicit scratch(std::size_t bytes) : whole_bytes_(bytes + kHuge)
    {
        void *p =
            mmap(nullptr, whole_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        whole_ = p == MAP_FAILED ? 0 : as_address(p);
        /* Neighbouring scratch may merge with this; huge pages would falsify. */
        advise(range_at(whole_, whole_ ? whole_bytes_ : 0), MADV_NOHUGEPAGE);
    }
    ~scratch()
    {
        if (whole_)
            munmap(as_pointer(whole_), whole_bytes_);
    }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    explicit operator bool() const { return whole_ != 0; }
    addr_t begin() const { return round_up(whole_, kHuge); }

  private:
    std::size_t whole_bytes_;
    addr_t whole_;
};

double median(std::array<double, kRepeats> v)
{
    std::nth_element(v.begin(), v.begin() + kRepeats / 2, v.end());
    return v[kRepeats / 2];
}

/* Landed data and user buffers are seldom in cache when a late receive is
 * posted. Elsewhere than on x86 the copy is measured warm, i.e. too cheap,
 * and rebinding is chosen later than it could be. */
void evict([[maybe_unused]] addr_t at, [[maybe_unused]] std::size_t len)
{
#if defined(__x86_64__)
    constexpr std::size_t kLine = 64;
    for (addr_t line = at; line < at + len; line += kLine)
        _mm_clflush(as_pointer(line));
    _mm_mfence();
#endif
}

double measure_copy(addr_t from, addr_t to, std::size_t len)
{
    std::array<double, kRepeats> ns;
    for (double &sample : ns) {
        evict(from, len);
        evict(to, len);
        std::uint64_t start = now_ns();
        std::memcpy(as_pointer(to), as_pointer(from), len);
        sample = static_cast<double>(now_ns() - start);
    }
    return median(ns);
}

/* What the kernel needs for an exchange is seldom in cache either: the
 * application has just been computing. Writing over a megabyte displaces it
 * from the nearer caches; displacing it from the last one would take longer
 * than the whole measurement may, so kColdKernel stands for that. Measured by
 * bench_deliver on an EPYC guest: 20 us warm, 25 displaced, 70 to 90 when 96 MiB
 * have been worked on before, while memcpy doubles. Doubling the fixed cost
 * puts the break-even where the benchmark finds it: a first guess, which
 * deliveries correct (experience.h). */
constexpr double kColdKernel = 2;

void displace(range junk)
{
    for (addr_t line = junk.begin; line < junk.end; line += 64)
        *static_cast<volatile char *>(as_pointer(line)) = 1;
}

/** Where exchanges are tried out. */
struct bench {
    address_space &space;
    std::uint32_t allowed;
    addr_t user, landing, spare;
    range junk;
};

/** One whole decision and exchange, as zc_deliver() makes them; the three
 *  ranges swap roles from one to the next. Negative if it failed. */
double measure_exchange(bench on, std::size_t len)
{
    std::array<double, kRepeats> ns;
    for (double &sample : ns) {
        displace(on.junk);
        vma_pieces pieces;
        std::uint64_t start = now_ns();
        range body = range_at(on.user, len);
        (void)on.space.examine(body, on.allowed, pieces);
        (void)on.space.without_straddling(body, pieces);
        (void)on.space.huge_inside(body, kFewUnits);
        pieces.clear();
        pieces.add(body);
        if (exchange_pages({body, on.landing, on.spare, pieces, {}}).error)
            return -1;
        sample = static_cast<double>(now_ns() - start);
        std::swap(on.landing, on.spare);
    }
    return median(ns);
}

double slope(double few, double many, std::size_t units)
{
    return std::max(0.0, (many - few) / static_cast<double>(units));
}

/** Each of @on populated from its beginning by kMedium bytes. */
void measure_copies(bench on, zc_costs_t &costs)
{
    double few = measure_copy(on.landing, on.user, kShort);
    double many = measure_copy(on.landing, on.user, kMedium);
    costs.copy_ns_per_byte = slope(few, many, kMedium - kShort);
    costs.copy_ns_fixed = std::max(0.0, few - costs.copy_ns_per_byte * kShort);
    /* Cold is cold: past the caches the slope stays. */
    costs.copy_ns_per_byte_long = costs.copy_ns_per_byte;
}

/** Sets the fixed cost and that of a page from samples of two lengths. What
 *  could not be done at all is left out: a fixed cost of zero. */
void set_pages(double few, double many, double &fixed, double &per_page)
{
    fixed = per_page = 0;
    if (few < 0 || many < 0)
        return;
    per_page = slope(few, many, (kMedium - kShort) / kPage);
    fixed = kColdKernel * std::max(1.0, few - per_page * kShortPages);
}

/** Return: 0 or -ENOMEM. */
int measure_mremap(bench on, zc_costs_t &costs)
{
    /* The first round warms up: it is the one that makes the page tables. */
    (void)measure_exchange(on, kMedium);
    double few = measure_exchange(on, kShort);
    double many = measure_exchange(on, kMedium);
    set_pages(few, many, costs.mremap_ns_fixed, costs.mremap_ns_per_page);
    if (costs.mremap_ns_fixed <= 0)
        return 0;

    for (std::size_t at = 0; at < kTables; at += kHuge)
        if (kernel.populate(range_at(on.user + at, kPage)) ||
            kernel.populate(range_at(on.landing + at, kPage)))
            return -ENOMEM;
    few = measure_exchange(on, kOneTable);
    many = measure_exchange(on, kTables);
    if (few >= 0 && many >= 0)
        costs.mremap_ns_per_2m = slope(few, many, (kTables - kOneTable) / kHuge);
    return 0;
}

/** One exchange by the module; negative if it was not done to its end. */
double measure_swap(exchanger &device, const bench &on, std::size_t len)
{
    std::array<double, kRepeats> ns;
    for (double &sample : ns) {
        displace(on.junk);
        std::uint64_t start = now_ns();
        if (device.exchange(range_at(on.user, len), on.landing).done != len)
            return -1;
        sample = static_cast<double>(now_ns() - start);
    }
    return median(ns);
}

/** Return: 0 or -ENOMEM. */
int measure_kmod(exchanger &device, const bench &on, zc_costs_t &costs)
{
    double few = measure_swap(device, on, kShort);
    double many = measure_swap(device, on, kMedium);
    set_pages(few, many, costs.kmod_ns_fixed, costs.kmod_ns_per_page);
    if (costs.kmod_ns_fixed <= 0)
        return 0;

    /* One huge page on either side. Where none are to be had, small ones are
     * exchanged in their stead, and are what it costs there. */
    scratch user(kHuge), landing(kHuge);
    if (!user || !landing)
        return -ENOMEM;
    bench huge{on.space, on.allowed, user.begin(), landing.begin(), 0, on.junk};
    for (addr_t at : {huge.user, huge.landing}) {
        advise(range_at(at, kHuge), MADV_HUGEPAGE);
        if (kernel.populate(range_at(at, kHuge)))
            return -ENOMEM;
    }
    double one = measure_swap(device, huge, kHuge);
    costs.kmod_ns_per_2m = one < 0 ? costs.kmod_ns_per_page * kHugePages
                                   : std::max(1.0, one - costs.kmod_ns_fixed / kColdKernel);
    return 0;
}

} // namespace

int calibrate(address_space &space, exchanger &device, std::uint32_t allowed, zc_costs_t &out)
{
    scratch user(kTables), landing(kTables), spare(kTables), junk(kJunk);
    if (!user || !landing || !spare || !junk)
        return -ENOMEM;
    bench on{space,           allowed,       user.begin(),
             landing.begin(), spare.begin(), range_at(junk.begin(), kJunk)};
    if (kernel.populate(range_at(on.user, kMedium)) ||
        kernel.populate(range_at(on.landing, kMedium)) || kernel.populate(on.junk))
        return -ENOMEM;

    zc_costs_t costs = kCostsUnmeasured;
    measure_copies(on, costs);
    if (device.ready())
        if (int err = measure_kmod(device, on, costs))
            return err;
    if (int err = measure_mremap(on, costs))
        return err;
    out = costs;
    return 0;
}

} // namespace zc
