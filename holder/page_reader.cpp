/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_reader.h"

#include <algorithm>
#include <exception>
#include <sched.h>
#include <utility>

#include "quiet_thread.h"

namespace zc::holder {
namespace {

/** Of the processors that this process may use; 1 if that cannot be told. */
unsigned count_processors()
{
    cpu_set_t usable;
    return sched_getaffinity(0, sizeof usable, &usable) == 0
               ? static_cast<unsigned>(CPU_COUNT(&usable))
               : 1;
}

} // namespace

page_reader::page_reader(std::size_t parts, reading read, const known_pages *there,
                         unsigned threads)
    : parts_(parts), read_(std::move(read)), there_(there)
{
    if (threads == 0)
        threads = std::min(count_processors(), kMostThreads);
    threads = static_cast<unsigned>(std::min<std::size_t>(threads, parts));
    if (threads < 2)
        return;
    ahead_.resize(std::size_t{2} * threads);
    threads_.reserve(threads);
    try {
        for (unsigned i = 0; i < threads; i++)
            threads_.push_back(quiet_thread([this] { work(); }));
    } catch (const std::exception &) {
        /* There are no more, or no memory: those that there are do it, or next() does. */
    }
}

page_reader::~page_reader()
{
    {
        const std::lock_guard guard(lock_);
        over_ = true;
    }
    has_room_.notify_all();
    for (std::thread &each : threads_)
        each.join();
}

void page_reader::find_places(read_part &part, std::optional<page_finder> &finder) const
{
    const std::string_view pages = part.pages;
    part.places.resize(pages.size() / known_pages::kPage);
    for (std::size_t i = 0; there_ && i < part.places.size(); i++)
        part.places[i] = finder->find(pages.substr(i * known_pages::kPage, known_pages::kPage));
}

page_reader::slot page_reader::read_one(std::size_t number,
                                        std::optional<page_finder> &finder) const
{
    slot made;
    made.is_read = true;
    try {
        if (there_ && !finder)
            finder.emplace(*there_);
        read_(number, made.part.pages);
        find_places(made.part, finder);
    } catch (...) {
        made.failure = std::current_exception();
    }
    return made;
}

void page_reader::work()
{
    std::optional<page_finder> finder;
    std::unique_lock held(lock_);
    for (;;) {
        has_room_.wait(
            held, [this] { return over_ || begun_ == parts_ || begun_ < taken_ + ahead_.size(); });
        if (over_ || begun_ == parts_)
            return;
        const std::size_t number = begun_++;
        held.unlock();
        slot made = read_one(number, finder);
        held.lock();
        ahead_[number % ahead_.size()] = std::move(made);
        has_read_.notify_one();
    }
}

read_part page_reader::next()
{
    slot made;
    if (threads_.empty()) {
        made = read_one(taken_++, finder_);
    } else {
        std::unique_lock held(lock_);
        slot &next = ahead_[taken_ % ahead_.size()];
        has_read_.wait(held, [&next] { return next.is_read; });
        made = std::exchange(next, {});
        taken_++;
        has_room_.notify_one();
    }
    if (made.failure)
        std::rethrow_exception(made.failure);
    return std::move(made.part);
}

} // namespace zc::holder
