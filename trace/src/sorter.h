/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_SORTER_H_INCLUDED
#define ZCT_SORTER_H_INCLUDED

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "spill_file.h"

namespace zc::zct {

/**
 * Puts records in order, of which there may be more than fit into memory: @budget bytes of them are
 * kept there, and the others wait in a file, in runs that are in order and are merged when they are
 * read. No two records are equal by their operator<.
 */
template <typename T>
class sorter {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit sorter(std::size_t budget) : most_(std::max<std::size_t>(budget / sizeof(T), 2)) {}

    void add(const T &record)
    {
        if (kept_.size() == most_)
            spill();
        if (kept_.capacity() == 0)
            kept_.reserve(most_); /* pages that are not used take no memory */
        kept_.push_back(record);
    }

    /** All were added. Reading begins at the first one; so does it when this is called again. */
    void rewind()
    {
        if (runs_.empty()) {
            std::sort(kept_.begin(), kept_.end());
            at_ = 0;
            return;
        }
        if (!kept_.empty())
            spill();
        kept_ = std::vector<T>(); /* {} would leave it its memory */
        heap_.clear();
        for (run &r : runs_) {
            r.next = r.begin;
            r.records.clear();
            r.at = 0;
            if (fill(r))
                heap_.push_back(&r);
        }
        std::make_heap(heap_.begin(), heap_.end(), later);
    }

    /** The record that next() will leave behind; NULL at the end. */
    const T *front() const
    {
        if (runs_.empty())
            return at_ < kept_.size() ? &kept_[at_] : nullptr;
        return heap_.empty() ? nullptr : &heap_.front()->records[heap_.front()->at];
    }

    void next()
    {
        if (runs_.empty()) {
            at_++;
            return;
        }
        std::pop_heap(heap_.begin(), heap_.end(), later);
        run &r = *heap_.back();
        r.at++;
        if (r.at < r.records.size() || fill(r))
            std::push_heap(heap_.begin(), heap_.end(), later);
        else
            heap_.pop_back();
    }

    /** Calls @see with each, from the first one on. */
    template <typename See>
    void each(See see)
    {
        for (rewind(); front(); next())
            see(*front());
    }

  private:
    /** Records in order, in the file. */
    struct run {
        std::uint64_t begin; /* in bytes */
        std::uint64_t end;
        std::uint64_t next;     /* the first that is not in `records` */
        std::vector<T> records; /* read ahead */
        std::size_t at;         /* in them */
    };

    static bool later(const run *a, const run *b) { return b->records[b->at] < a->records[a->at]; }

    void spill()
    {
        std::sort(kept_.begin(), kept_.end());
        const std::uint64_t begin = file_.size();
        file_.append(std::as_bytes(std::span(kept_)));
        runs_.push_back({begin, file_.size(), begin, {}, 0});
        kept_.clear();
    }

    /** Reads a run's next records; false: there are none. */
    bool fill(run &r)
    {
        const std::uint64_t left = (r.end - r.next) / sizeof(T);
        const std::size_t share = std::max<std::size_t>(most_ / runs_.size(), 1);
        r.records.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, share)));
        r.at = 0;
        file_.read(r.next, std::as_writable_bytes(std::span(r.records)));
        r.next += r.records.size() * sizeof(T);
        return !r.records.empty();
    }

    std::size_t most_;
    std::vector<T> kept_;
    std::size_t at_ = 0;
    spill_file file_;
    std::vector<run> runs_;
    std::vector<run *> heap_; /* the one with the first record in front */
};

} // namespace zc::zct

#endif
