/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

#include "cost.h"
#include "proc_text.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zc::test {

buffer::buffer(std::size_t bytes, int flags, int fd)
    : outer_bytes_(round_up(bytes, kPage) + 2 * kHuge), bytes_(bytes)
{
    outer_ =
        mmap(nullptr, outer_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    addr_t begin = round_up(as_address(outer_) + kPage, kHuge);
    void *p = mmap(as_pointer(begin), bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    if (outer_ == MAP_FAILED || p == MAP_FAILED)
        throw std::bad_alloc();
    data_ = static_cast<char *>(p);
    if (fd >= 0)
        close(fd);
}

huge_buffer::huge_buffer(std::size_t bytes) : buffer(bytes)
{
    advise(all(), MADV_HUGEPAGE);
    std::memset(data(), 9, size());
}

hugetlb_page::hugetlb_page()
{
    void *p = mmap(nullptr, kHuge, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
}

hugetlb_page::~hugetlb_page()
{
    if (data_)
        munmap(data_, kHuge);
}

range hugetlb_page::all() const
{
    return range_at(as_address(data_), kHuge);
}

int memory_file(std::size_t bytes)
{
    int fd = memfd_create("zc-test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    return fd;
}

forked_check::forked_check(const std::function<bool()> &check)
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    child_ = fork();
    if (child_ == 0) {
        char c;
        close(ends[1]);
        ssize_t n = read(ends[0], &c, 1); /* until the parent closes its end */
        _exit(n == 0 && check() ? 0 : 1);
    }
    close(ends[0]);
    go_ = ends[1];
}

bool forked_check::passes()
{
    close(go_);
    int status = -1;
    return waitpid(child_, &status, 0) == child_ && status == 0;
}

zc_params_t fixture::default_params()
{
    zc_params_t p{};
    p.size = sizeof(p);
    /* Most tests are about mremap, with or without the module in the machine. */
    p.means = 1u << ZC_MEANS_COPY | 1u << ZC_MEANS_MREMAP;
    p.flags = ZC_FLAG_ALWAYS_REBIND;
    p.budget_bytes = 64 * MiB;
    return p;
}

fixture::~fixture()
{
    zc_destroy(zc_);
    kernel = kernel_calls_real;
    if (!cost_file_.empty())
        (void)std::remove(cost_file_.c_str());
}

void fixture::use_costs(const zc_costs_t &costs)
{
    cost_file_ = testing::TempDir() + "zc_fixture_costs_" + std::to_string(getpid());
    ASSERT_EQ(save_costs(cost_file_.c_str(), costs), 0);
    params_.cost_file = cost_file_.c_str();
    params_.flags &= ~ZC_FLAG_ALWAYS_REBIND;
    kernel.now = [] { return std::uint64_t{1}; };
}

std::string name_of(backend b)
{
    constexpr const char *kNames[] = {"mremap", "fake", "mixed", "device", "device_mixed"};
    return kNames[static_cast<int>(b)];
}

void PrintTo(backend b, std::ostream *out)
{
    *out << name_of(b);
}

backend_fixture::backend_fixture(backend b) : backend_(b)
{
    constexpr std::uint32_t kCopy = means_bit(ZC_MEANS_COPY);
    bool fake = b == backend::fake || b == backend::mixed;
    bool mixed = b == backend::mixed || b == backend::device_mixed;
    params_.means = mixed                  ? kAllMeans
                    : b == backend::mremap ? kCopy | means_bit(ZC_MEANS_MREMAP)
                                           : kCopy | means_bit(ZC_MEANS_KMOD);
    if (fake)
        fake_ = std::make_unique<fake_device>();
}

zc_t *fixture::zc()
{
    if (!zc_) {
        EXPECT_EQ(zc_create(&params_, &zc_), 0);
    }
    return zc_;
}

zc_stats_t fixture::stats()
{
    zc_stats_t s{};
    s.size = sizeof(s);
    EXPECT_EQ(zc_stats(zc(), &s), 0);
    return s;
}

zc_landing_t *fixture::acquire(std::size_t len, const void *expected)
{
    zc_landing_t *landing = nullptr;
    EXPECT_EQ(zc_landing_acquire(zc(), len, expected, &landing), 0);
    return landing;
}

zc_delivery_t fixture::deliver_landing(zc_landing_t *landing, char *dst, std::size_t len)
{
    zc_delivery_t how{};
    EXPECT_EQ(zc_deliver(zc(), landing, dst, len, &how), 0);
    EXPECT_EQ(how.bytes_rebound + how.bytes_copied, len);
    return how;
}

zc_delivery_t fixture::deliver(char *dst, std::size_t len, unsigned seed)
{
    zc_landing_t *landing = acquire(len, dst);
    fill(static_cast<char *>(zc_landing_data(landing)), len, seed);
    zc_delivery_t how = deliver_landing(landing, dst, len);
    EXPECT_EQ(first_wrong(dst, len, seed), len);
    return how;
}

zc_delivery_t fixture::deliver_inside(const buffer &b, std::size_t len, unsigned seed)
{
    std::memset(b.data(), 9, b.size());
    zc_delivery_t how = deliver(b.data() + 16, len, seed);
    EXPECT_EQ(b.data()[15], 9);
    EXPECT_EQ(b.data()[16 + len], 9);
    return how;
}

void fixture::expect_copied(const buffer &b, zc_reason_t reason, std::size_t offset,
                            std::size_t len)
{
    zc_delivery_t how = deliver(b.data() + offset, len, 5);
    EXPECT_EQ(how.reason, reason) << zc_reason_name(how.reason);
    EXPECT_EQ(how.bytes_rebound, 0u);
    EXPECT_EQ(how.means, ZC_MEANS_COPY);
    EXPECT_EQ(stats().copied_by_reason[reason], 1u);
}

void fill(char *at, std::size_t len, unsigned seed)
{
    for (std::size_t i = 0; i < len; i++)
        at[i] = pattern(seed, i);
}

std::size_t first_wrong(const char *at, std::size_t len, unsigned seed)
{
    for (std::size_t i = 0; i < len; i++)
        if (at[i] != pattern(seed, i))
            return i;
    return len;
}

std::size_t huge_bytes(range r)
{
    vma area;
    std::size_t kib = 0;
    for_each_line("/proc/self/smaps", [&](std::string_view line) {
        vma head;
        if (parse_maps_line(line, head))
            area = head;
        else if (line.starts_with("AnonHugePages:") && !intersection(area.span, r).empty())
            kib += std::strtoul(line.data() + std::strlen("AnonHugePages:"), nullptr, 10);
        return true;
    });
    return kib * 1024;
}

std::string vm_flags(addr_t at)
{
    vma area;
    std::string flags;
    for_each_line("/proc/self/smaps", [&](std::string_view line) {
        vma head;
        if (parse_maps_line(line, head))
            area = head;
        else if (line.starts_with("VmFlags:") && area.span.contains(at))
            flags = std::string(line.substr(std::strlen("VmFlags:")));
        return flags.empty();
    });
    return flags;
}

std::size_t resident_bytes(range r)
{
    std::vector<unsigned char> pages(r.size() / kPage);
    EXPECT_EQ(mincore(as_pointer(r.begin), r.size(), pages.data()), 0);
    std::size_t sum = 0;
    for (unsigned char page : pages)
        sum += (page & 1u) * kPage;
    return sum;
}

long minor_faults()
{
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

int lock_memory(void *at, std::size_t len)
{
    return static_cast<int>(syscall(SYS_mlock, at, len));
}

int unlock_memory(void *at, std::size_t len)
{
    return static_cast<int>(syscall(SYS_munlock, at, len));
}

std::size_t count_mappings()
{
    return mapping_starts().size();
}

bool huge_pages_available()
{
    if (kernel_thp_mode() == thp_mode::never)
        return false;
    huge_buffer probe(2 * kHuge);
    return huge_bytes(probe.all()) > 0;
}

} // namespace zc::test
