/* SPDX-License-Identifier: BSD-3-Clause */
#include "background_mover.h"

#include <cstdint>
#include <stdexcept>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace zc::agent {
namespace {

constexpr std::size_t kRemembered = 256;

void wake(int fd)
{
    const std::uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

} // namespace

std::string printable(std::string text)
{
    for (char &c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            c = ' ';
    }
    return text.substr(0, kMaxText);
}

background_mover::background_mover()
    : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (wake_ < 0 || stop_ < 0)
        throw std::runtime_error("no eventfd");
}

background_mover::~background_mover()
{
    end();
    close(wake_);
    close(stop_);
}

void background_mover::end()
{
    wake(stop_);
    for (auto &[txn, thread] : threads_)
        thread.join();
    threads_.clear();
}

void background_mover::push(msg::outcome o)
{
    std::lock_guard lock(mutex_);
    if (past_.insert_or_assign(o.txn, o).second)
        past_order_.push_back(o.txn);
    if (past_order_.size() > kRemembered) {
        past_.erase(past_order_.front());
        past_order_.erase(past_order_.begin());
    }
    done_.push_back(std::move(o));
    wake(wake_);
}

void background_mover::begin(const msg::ask &wanted, std::function<msg::outcome()> act)
{
    if (knows(wanted.txn))
        return; /* the same once more */
    push({wanted.txn, wanted.job, msg::verdict::running, 0, 0, {}, ""});
    threads_[wanted.txn] = std::thread([this, act = std::move(act)] { push(act()); });
}

bool background_mover::knows(const txn_id &txn)
{
    std::lock_guard lock(mutex_);
    return past_.contains(txn);
}

void background_mover::query(const msg::query &wanted)
{
    msg::outcome o{wanted.txn, wanted.job, msg::verdict::unknown, 0, 0, {}, ""};
    {
        std::lock_guard lock(mutex_);
        if (auto at = past_.find(wanted.txn); at != past_.end())
            o = at->second;
        done_.push_back(o);
    }
    wake(wake_);
}

std::vector<msg::outcome> background_mover::take()
{
    std::uint64_t count;
    (void)!read(wake_, &count, sizeof count);
    std::vector<msg::outcome> all;
    {
        std::lock_guard lock(mutex_);
        all.swap(done_);
    }
    for (const msg::outcome &o : all) {
        auto at = threads_.find(o.txn);
        if (at != threads_.end() && o.what != msg::verdict::running) {
            at->second.join();
            threads_.erase(at);
        }
    }
    return all;
}

} // namespace zc::agent
