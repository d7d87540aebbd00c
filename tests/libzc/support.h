/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_SUPPORT_H_INCLUDED
#define ZC_TESTS_SUPPORT_H_INCLUDED

#include "fake_device.h"
#include "kernel.h"
#include "page.h"
#include "zc/zc.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace zc::test {

/* Sanitizers map and touch memory of their own while a test runs: counts of
 * page faults and of mappings then say nothing about the library. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

/** Anonymous memory, first byte on a 2 MiB boundary, of one VMA of its own:
 *  inaccessible pages on both sides keep neighbours from merging. @fd is closed. */
class buffer {
  public:
    explicit buffer(std::size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1);
    ~buffer() { munmap(outer_, outer_bytes_); }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    char *data() const { return data_; }
    addr_t at() const { return as_address(data_); }
    std::size_t size() const { return bytes_; }
    range all() const { return range_at(at(), bytes_); }

  private:
    void *outer_;
    std::size_t outer_bytes_;
    std::size_t bytes_;
    char *data_;
};

/** Memory for which huge pages were asked for, with a 9 in every byte. */
class huge_buffer : public buffer {
  public:
    explicit huge_buffer(std::size_t bytes);
};

/** A page of hugetlbfs; false if none is reserved (vm.nr_hugepages). */
class hugetlb_page {
  public:
    hugetlb_page();
    ~hugetlb_page();
    hugetlb_page(const hugetlb_page &) = delete;
    hugetlb_page &operator=(const hugetlb_page &) = delete;

    explicit operator bool() const { return data_ != nullptr; }
    char *data() const { return data_; }
    range all() const;

  private:
    char *data_;
};

/** A descriptor of a file in memory, of @bytes. */
int memory_file(std::size_t bytes);

/** A forked child with the memory of this moment. It runs @check when passes() is called. */
class forked_check {
  public:
    explicit forked_check(const std::function<bool()> &check);
    /** What @check returned; false if the child ended in another way. To be called once. */
    bool passes();

  private:
    int go_ = -1;
    int child_ = -1;
};

/** A zc_t with parameters to be set before the first use. */
class fixture : public testing::Test {
  protected:
    ~fixture() override;
    zc_t *zc();
    zc_stats_t stats();
    zc_landing_t *acquire(std::size_t len, const void *expected);

    /** Lands bytes made from @seed for @dst and delivers them; checks every
     *  byte of the range. */
    zc_delivery_t deliver(char *dst, std::size_t len, unsigned seed);
    zc_delivery_t deliver_landing(zc_landing_t *landing, char *dst, std::size_t len);
    /** Delivers to @b + 16; expects what is before and behind it in @b to stay as it is. */
    zc_delivery_t deliver_inside(const buffer &b, std::size_t len, unsigned seed);
    /** Delivers into @b + @offset and expects nothing to be exchanged, for @reason. */
    void expect_copied(const buffer &b, zc_reason_t reason, std::size_t offset = 16,
                       std::size_t len = 64 * KiB);

    /** Lets the cost model decide, with these. Stops the clock, so that nothing
     *  is learned but what the test makes take time. */
    void use_costs(const zc_costs_t &costs);

    zc_params_t params_ = default_params();
    static zc_params_t default_params();

  private:
    zc_t *zc_ = nullptr;
    std::string cost_file_;
};

/** What exchanges pages. */
enum class backend {
    mremap,
    fake,   /* the fake device, nothing but it */
    mixed,  /* mremap and the fake device, as the costs have it */
    device, /* /dev/zc, nothing but it */
    device_mixed,
};
std::string name_of(backend b);
/** The same for GoogleTest. */
void PrintTo(backend b, std::ostream *out);

/** Those that the tests of every backend run with; each test program has its own. */
std::vector<backend> backends_under_test();

/** A fixture for the means of @b. */
class backend_fixture : public fixture {
  protected:
    explicit backend_fixture(backend b);

    const backend backend_;
    std::unique_ptr<fake_device> fake_; /* if it is among the means */
};

/** The byte that belongs at @index of the message with @seed. */
inline char pattern(unsigned seed, std::size_t index)
{
    return static_cast<char>((index * 2654435761u + seed * 40503u) >> 13);
}
void fill(char *at, std::size_t len, unsigned seed);
/** First index that differs from the pattern; @len if none does. */
std::size_t first_wrong(const char *at, std::size_t len, unsigned seed);

/** Bytes of @r on huge pages, from smaps; the range should be a VMA or more. */
std::size_t huge_bytes(range r);
/** The VmFlags of the VMA that holds @at, e.g. "rd wr mr mw me ac". */
std::string vm_flags(addr_t at);
/** Bytes of @r that have memory behind them. */
std::size_t resident_bytes(range r);
long minor_faults();
/** mlock(2) and munlock(2) themselves: sanitizers turn libc's into nothing. */
int lock_memory(void *at, std::size_t len);
int unlock_memory(void *at, std::size_t len);
std::size_t count_mappings();

/** Does the machine give huge pages where they are asked for? */
bool huge_pages_available();

} // namespace zc::test

#endif /* ZC_TESTS_SUPPORT_H_INCLUDED */
