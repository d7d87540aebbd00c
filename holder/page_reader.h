/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_READER_H_INCLUDED
#define ZC_HOLDER_PAGE_READER_H_INCLUDED

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "known_pages.h"

namespace zc::holder {

/** Pages, and maybe a part of one behind them. */
struct read_part {
    std::string pages;
    /** Of each whole page, where in its store the other host has it. */
    std::vector<std::optional<std::uint64_t>> places;
};

/**
 * Reads what does not change, in parts, and finds which of its pages the other host has. It does so
 * ahead, in as many threads as there are processors that this process may use, kMostThreads at
 * most: the rank stands still meanwhile, so one of them at least has nothing else to do. The sums
 * take longer than the reading.
 */
class page_reader {
  public:
    static constexpr unsigned kMostThreads = 4;
    /** Reads part @number into @pages, which is empty. It is called by several threads at once. */
    using reading = std::function<void(std::size_t number, std::string &pages)>;

    /** @there: nullptr if the other host has none; nothing is added to it as long as this is there.
     * @threads: 0: as above; 1: next() reads, and there is no thread. */
    page_reader(std::size_t parts, reading read, const known_pages *there, unsigned threads = 0);
    ~page_reader();
    page_reader(const page_reader &) = delete;
    page_reader &operator=(const page_reader &) = delete;

    /** Has next() returned all parts? */
    bool is_at_end() const noexcept { return taken_ == parts_; }
    /** The next part, in order. It waits for it. It throws what @read has thrown for it; then this
     * is of no more use. */
    read_part next();

  private:
    struct slot {
        read_part part;
        std::exception_ptr failure;
        bool is_read = false;
    };
    void work();
    void find_places(read_part &part, std::optional<page_finder> &finder) const;
    slot read_one(std::size_t number, std::optional<page_finder> &finder) const;

    const std::size_t parts_;
    const reading read_;
    const known_pages *const there_;
    std::optional<page_finder> finder_; /* of the caller's thread */
    std::mutex lock_;                   /* of what follows */
    std::condition_variable has_room_, has_read_;
    std::vector<slot> ahead_; /* those after the last one that was taken; part n at n mod size */
    std::size_t taken_ = 0, begun_ = 0;
    bool over_ = false;
    std::vector<std::thread> threads_;
};

} // namespace zc::holder

#endif
