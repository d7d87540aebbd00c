/* SPDX-License-Identifier: BSD-3-Clause */
#include "two_sides.h"

#include <algorithm>
#include <map>
#include <span>
#include <thread>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace zc::migrate {

namespace {

constexpr double kRest = 0.02;     /* seconds that a look in vain takes */
constexpr double kForever = 10000; /* longer than all time limits of a test together */

} // namespace

/** One process's end. Used in its turn only. */
class two_sides::endpoint final : public connection {
  public:
    endpoint(two_sides &of, side who)
        : of_(of), who_(who), mine_(of.sides_[who]), other_(of.sides_[1 - who])
    {
    }

    bool start_send(int kind, std::span<const std::byte> bytes, ticket &it) override
    {
        step();
        if (other_.ended)
            return false;
        post({kind, {bytes.begin(), bytes.end()}});
        it = next_++;
        sends_[it] = mine_.sent.size() - 1;
        return true;
    }
    bool start_send_until_taken(int kind, ticket &it) override
    {
        if (!start_send(kind, {}, it))
            return false;
        mine_.taken[sends_[it]] = false; /* and it stays so if it is lost */
        return true;
    }
    bool send_and_forget(int kind) override
    {
        if (other_.ended)
            return false;
        other_.coming.push_back({{kind, {}}, kNoSend});
        return true;
    }
    bool start_receive(int kind, std::span<std::byte> room, ticket &it) override
    {
        step();
        it = next_++;
        receives_.push_back({it, kind, room});
        return true;
    }
    bool test(ticket &it, bool &done, std::size_t &bytes) override
    {
        done = true;
        bytes = 0;
        if (it == kNone)
            return true;
        if (const auto send = sends_.find(it); send != sends_.end()) {
            done = mine_.taken[send->second];
            if (!done)
                return !other_.ended;
            sends_.erase(send);
            it = kNone;
            return true;
        }
        match();
        const auto found = arrived_.find(it);
        done = found != arrived_.end();
        if (!done)
            return true;
        bytes = found->second;
        arrived_.erase(found);
        it = kNone;
        return true;
    }
    void cancel(ticket it) override
    {
        match();
        if (std::erase_if(receives_, [it](const pending &one) { return one.it == it; }) > 0)
            arrived_[it] = 0;
    }
    bool probe(std::optional<message> &there) override
    {
        match();
        there.reset();
        if (!mine_.coming.empty())
            there = {mine_.coming.front().what.kind, mine_.coming.front().what.bytes.size()};
        return true;
    }
    bool receive(const message &, std::span<std::byte> room) override
    {
        step();
        take(mine_.coming.begin(), room);
        return true;
    }

    bool start_synchronising(ticket &it) override
    {
        it = kNone;
        return true;
    }
    std::string end_of_peer() override
    {
        if (!end_is_told() || !other_.ended)
            return "";
        if (ended_at_ < 0)
            ended_at_ = of_.now_;
        return of_.now_ - ended_at_ < of_.told_after_s_ ? "" : of_.end_;
    }
    bool end_is_told() const override { return of_.told_after_s_ >= 0; }
    void close() override {}
    void forget(bool) override {}
    void make_progress() override {}
    double now() const override { return of_.now_; }
    void rest(unsigned) override { of_.yield(who_); }

  private:
    struct pending {
        ticket it;
        int kind;
        std::span<std::byte> room;
    };
    static constexpr std::size_t kNoSend = ~std::size_t{0};

    void step()
    {
        if (mine_.steps++ >= mine_.dies_at)
            throw killed();
    }
    void post(two_sides::message what)
    {
        const std::size_t number = mine_.sent.size();
        mine_.sent.push_back(what);
        mine_.taken.push_back(true);
        std::vector<two_sides::message> arrive;
        if (of_.network_)
            arrive = of_.network_(who_, number, std::move(what));
        else
            arrive.push_back(std::move(what));
        for (auto &one : arrive) {
            mine_.taken[number] = false;
            other_.coming.push_back({std::move(one), number});
        }
    }
    std::size_t take(std::deque<on_its_way>::iterator one, std::span<std::byte> room)
    {
        const auto &bytes = one->what.bytes;
        const std::size_t length = std::min(bytes.size(), room.size());
        std::copy_n(bytes.begin(), length, room.begin());
        if (one->number != kNoSend)
            other_.taken[one->number] = true;
        mine_.coming.erase(one);
        return length;
    }
    /** Receives that were begun get what has come. */
    void match()
    {
        for (auto each = receives_.begin(); each != receives_.end();) {
            const auto one = std::ranges::find_if(mine_.coming, [&](const on_its_way &coming) {
                return coming.what.kind == each->kind;
            });
            if (one == mine_.coming.end()) {
                ++each;
                continue;
            }
            arrived_[each->it] = take(one, each->room);
            each = receives_.erase(each);
        }
    }

    two_sides &of_;
    side who_;
    state &mine_, &other_;
    ticket next_ = 1;
    double ended_at_ = -1; /* the other has been found to have ended */
    std::map<ticket, std::size_t> sends_;
    std::vector<pending> receives_;
    std::map<ticket, std::size_t> arrived_;
};

two_sides::two_sides() = default;
two_sides::~two_sides() = default;

void two_sides::kill(side who, std::size_t at)
{
    sides_[who].dies_at = at;
}

std::unique_ptr<connection> two_sides::end_of(side who)
{
    return std::make_unique<endpoint>(*this, who);
}

void two_sides::await_turn(std::unique_lock<std::mutex> &lock, side who)
{
    changed_.wait(lock, [&] { return turn_ == who; });
}

/** Nothing to do: it is the other's turn. */
void two_sides::yield(side who)
{
    std::unique_lock lock(mutex_);
    now_ += kRest;
    if (now_ > kForever) {
        hung_ = true;
        throw hangs();
    }
    const side other = who == leaver ? successor : leaver;
    if (sides_[other].ended)
        return;
    turn_ = other;
    changed_.notify_all();
    await_turn(lock, who);
}

void two_sides::play(side who, const std::function<void()> &part)
{
    {
        std::unique_lock lock(mutex_);
        await_turn(lock, who);
    }
#ifdef __SANITIZE_ADDRESS__
    /* One that gives up leaves to the network what that may read later: lifeline::finish_with(). */
    const __lsan::ScopedDisabler no_leak;
#endif
    try {
        part();
    } catch (const std::exception &problem) {
        sides_[who].problem = problem.what();
    }
    std::lock_guard lock(mutex_);
    sides_[who].ended = true;
    turn_ = who == leaver ? successor : leaver;
    changed_.notify_all();
}

void two_sides::run(const std::function<void()> &leaving, const std::function<void()> &succeeding)
{
    std::thread other([&] { play(successor, succeeding); });
    play(leaver, leaving);
    other.join();
}

} // namespace zc::migrate
