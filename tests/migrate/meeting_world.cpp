/* SPDX-License-Identifier: BSD-3-Clause */
#include "meeting_world.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zc::migrate::sim {

namespace {

constexpr double kPatience = 60;
constexpr double kTick = 0.6 * kPatience; /* so that some are late and others are not */
constexpr double kMoment = 0.1;           /* longer than rank 0 waits in a safe point for answers */

void mix(std::uint64_t &sum, std::uint64_t value)
{
    sum ^= value + 0x9e3779b97f4a7c15u + (sum << 6) + (sum >> 2);
    sum *= 0xff51afd7ed558ccdu;
    sum ^= sum >> 33;
}

} // namespace

struct world::operation {
    memory_round *of;
    std::size_t index; /* in the round */
    int target;
    window::place where;
    window::operation what;
    std::int64_t value;
    bool applied = false;
    std::int64_t was = 0;
};

class world::memory_round final : public window::round {
  public:
    memory_round(world &in, window::place where, window::operation what, std::int64_t value)
        : round(in.what_.ranks - 1), in_(in), answered_(got.size())
    {
        for (std::size_t i = 0; i < got.size(); i++)
            in_.pending_[i + 1].push_back({this, i, static_cast<int>(i) + 1, where, what, value});
    }
    ~memory_round() override
    {
        if (!is_done() && !in_.within_ && !in_.stopped_)
            in_.within_ = violation("a round was given up before all had answered");
        for (auto &queue : in_.pending_)
            std::erase_if(queue, [this](const operation &one) { return one.of == this; });
    }
    memory_round(const memory_round &) = delete;
    memory_round &operator=(const memory_round &) = delete;

    bool is_done() override
    {
        return std::ranges::all_of(answered_, [](bool it) { return it; });
    }
    bool has_answered(std::size_t i) const override { return answered_[i]; }
    void wait() override
    {
        for (auto &queue : in_.pending_)
            while (!queue.empty())
                in_.answer(queue.front());
    }
    void answered(std::size_t i, std::int64_t was)
    {
        got[i] = was;
        answered_[i] = true;
    }

  private:
    world &in_;
    std::vector<bool> answered_;
};

class world::memory_window final : public window {
  public:
    memory_window(world &in, words &own, int rank) : in_(in), own_(own), rank_(rank) {}
    void close() override {}
    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return in_.what_.ranks; }
    std::unique_ptr<round> start(place where, operation what, std::int64_t value) override
    {
        return std::make_unique<memory_round>(in_, where, what, value);
    }
    std::int64_t load(place where) noexcept override
    {
        in_.between(rank_);
        in_.access(rank_, own_[where]);
        return own_[where];
    }
    void store(place where, std::int64_t value) noexcept override
    {
        in_.between(rank_);
        in_.access(rank_, value);
        own_[where] = value;
    }
    std::int64_t add(place where, std::int64_t value) noexcept override
    {
        in_.between(rank_);
        in_.access(rank_, own_[where]);
        return own_[where].fetch_add(value);
    }

  private:
    world &in_;
    words &own_;
    int rank_;
};

/** Rank 0's control_server and job_control, and what those hear that asked. */
class world::socket final : public request_source {
  public:
    explicit socket(world &in) : in_(in) {}

    bool take() override
    {
        in_.between(0);
        in_.access(0, static_cast<std::int64_t>(state_));
        taken_ = state_ == state::waiting;
        if (taken_)
            state_ = state::running;
        return taken_;
    }
    double asked() const noexcept override { return asked_; }
    bool weighs() const override { return in_.what_.weighs; }
    std::string too_heavy(const std::vector<std::int64_t> &bytes) const override
    {
        for (std::size_t r = 0; r < in_.ranks_.size(); r++)
            if (bytes.size() != in_.ranks_.size() || bytes[r] != state_of(static_cast<int>(r)))
                in_.within_ = violation("the states of ranks are not as large as they say");
        if (in_.heavy_ == 0)
            return "";
        in_.heavy_--;
        return "too heavy";
    }
    static std::int64_t state_of(int rank) { return 100 + rank; }
    bool hold() override
    {
        in_.between(0);
        in_.access(0, expired_);
        held_ = true;
        return !expired_;
    }
    void release() { held_ = false; }
    void finish(const std::string &outcome) override
    {
        if (!taken_)
            return;
        taken_ = false;
        in_.between(0);
        in_.access(0, expired_);
        if (!expired_)
            reply(outcome == "met");
        if (!in_.what_.time_passes && (outcome.find("in time") != std::string::npos ||
                                       outcome.find("not returned") != std::string::npos))
            in_.within_ = violation("refused, as if time had passed: " + outcome);
        state_ = state::idle;
    }
    bool is_taken() const { return taken_; }

    bool may_ask() const { return open_ && state_ == state::idle && !rings_ && asks_ > 0; }
    void ask()
    {
        asks_--;
        state_ = state::waiting;
        asked_ = in_.now_;
        held_ = expired_ = false;
        rings_ = true;
        unanswered_++;
    }
    bool may_ring() const { return rings_; }
    void ring(negotiation &there)
    {
        rings_ = false;
        there.ring();
    }
    bool may_expire() const
    {
        return state_ != state::idle && !held_ && !expired_ && in_.now_ - asked_ >= kPatience;
    }
    void expire()
    {
        reply(false);
        if (state_ == state::waiting)
            state_ = state::idle;
        else
            expired_ = true;
    }
    void close_door()
    {
        open_ = false;
        if (state_ == state::waiting) {
            reply(false);
            state_ = state::idle;
        }
    }
    int unanswered() const { return unanswered_; }
    void allow(int requests) { asks_ = requests; }
    void print(std::uint64_t &sum) const
    {
        for (int flag : {static_cast<int>(state_), int{taken_}, int{held_}, int{expired_},
                         int{rings_}, int{open_}, asks_, unanswered_})
            mix(sum, static_cast<std::uint64_t>(flag));
        const double age = state_ == state::idle ? 0 : std::min(in_.now_ - asked_, 2 * kPatience);
        mix(sum, std::bit_cast<std::uint64_t>(age));
    }

  private:
    enum class state { idle, waiting, running };

    void reply(bool met)
    {
        unanswered_--;
        (met ? in_.met_ : in_.refused_)++;
        if (unanswered_ != 0 && !in_.within_)
            in_.within_ = violation("a request was answered twice");
    }

    world &in_;
    state state_ = state::idle;
    bool taken_ = false, held_ = false, expired_ = false, rings_ = false, open_ = true;
    int asks_ = 0, unanswered_ = 0;
    double asked_ = 0;
};

/** Of the other ranks. */
class world::nothing_asked final : public request_source {
  public:
    bool take() override { return false; }
    double asked() const noexcept override { return 0; }
    bool hold() override { return true; }
    void finish(const std::string &) override {}
};

struct world::rank {
    nothing_asked nothing;
    std::unique_ptr<negotiation> agreement = std::make_unique<negotiation>();
    std::unique_ptr<rendezvous> meeting;
    where at = where::computing;
    std::int64_t n = 0;    /* the safe point where it is, or was last */
    std::int64_t left = 0; /* the last one that it has left */
    bool waits = false;    /* its last step has found nothing new */
    bool fresh = true;     /* something has changed since it began its last step */

    bool is_parked() const { return waits && !fresh; }
};

world::world(const scenario &what, chooser &decides)
    : what_(what), decides_(decides), socket_(std::make_unique<socket>(*this)),
      pending_(static_cast<std::size_t>(what.ranks)), put_off_(what.put_off),
      functions_(what.functions), heavy_(what.heavy)
{
    socket_->allow(what.requests);
    for (int r = 0; r < what.ranks; r++) {
        ranks_.push_back(std::make_unique<rank>());
        ranks_.back()->agreement->open(open(r), 0);
        ranks_.back()->agreement->weigh(static_cast<std::uint64_t>(socket::state_of(r)));
        ranks_.back()->meeting = meeting_of(r);
    }
}

world::~world()
{
    stopped_ = true;
}

std::unique_ptr<rendezvous> world::meeting_of(int r)
{
    rank &who = *ranks_[r];
    request_source &requests = r == 0 ? static_cast<request_source &>(*socket_) : who.nothing;
    return std::make_unique<rendezvous>(*who.agreement, requests, kPatience,
                                        [this, r] { between(r); });
}

std::unique_ptr<window> world::open(int r)
{
    return std::make_unique<memory_window>(*this, ranks_[r]->agreement->own_words(), r);
}

void world::expect(bool holds, const std::string &otherwise) const
{
    if (!holds)
        throw violation(otherwise);
}

/* ---- what can happen ---- */

/** Has a rank that computes what it needs to come to its next safe point? */
bool world::may_go_on(int r) const
{
    const rank &who = *ranks_[r];
    const auto others_have_left = [&](std::int64_t n) {
        return std::ranges::all_of(
            ranks_, [&](const auto &one) { return one.get() == &who || one->left >= n; });
    };
    if (r == what_.silent && who.n >= what_.silent_after && !others_have_left(what_.safe_points))
        return false;
    if (!what_.exchanges)
        return true;
    const auto has_sent = [&](int peer) { return ranks_[peer]->left >= who.n; };
    return (r == 0 || has_sent(r - 1)) && (r + 1 == what_.ranks || has_sent(r + 1));
}

void world::list_actions()
{
    actions_.clear();
    if (stepping_ >= 0)
        actions_.push_back({kind::resume, stepping_, 0});
    bool all_met = true, all_finish = true, some_wait = false;
    for (int r = 0; r < what_.ranks; r++) {
        const rank &who = *ranks_[r];
        all_met = all_met && who.at == where::met;
        all_finish = all_finish && who.at == where::finishing;
        some_wait = some_wait || who.at == where::called;
        if (r == stepping_ || who.at == where::met || who.at == where::finishing)
            continue;
        if (who.at == where::computing && !may_go_on(r))
            continue;
        if (!who.is_parked())
            actions_.push_back({kind::step, r, 0});
        if (r == 0 && who.at == where::called && who.waits && who.agreement->is_ahead_of(who.n))
            actions_.push_back({kind::impatient, r, 0});
    }
    if (all_met)
        actions_.push_back({kind::conclude, 0, 0});
    if (all_finish)
        actions_.push_back({kind::end, 0, 0});
    for (int r = 1; r < what_.ranks; r++)
        for (std::size_t i = 0; i < pending_[r].size(); i++) {
            const operation &one = pending_[r][i];
            const bool first = std::none_of(
                pending_[r].begin(), pending_[r].begin() + static_cast<std::ptrdiff_t>(i),
                [&](const operation &other) { return !other.applied && other.where == one.where; });
            if (one.applied || first)
                actions_.push_back({one.applied ? kind::answer : kind::apply, r, i});
        }
    if (socket_->may_ask())
        actions_.push_back({kind::ask, 0, 0});
    if (socket_->may_ring())
        actions_.push_back({kind::ring, 0, 0});
    if (socket_->may_expire())
        actions_.push_back({kind::expire, 0, 0});
    if (what_.time_passes && (some_wait || socket_->unanswered() > 0))
        actions_.push_back({kind::tick, 0, 0});
}

std::string world::describe(std::size_t possibility) const
{
    const action &one = actions_.at(possibility);
    const rank &who = *ranks_[one.rank];
    const std::string name = "rank " + std::to_string(one.rank);
    static constexpr const char *kPlaces[] = {"proposal", "confirmation", "counter",
                                              "arrival",  "verdict",      "bytes"};
    static constexpr const char *kOperations[] = {"reads", "replaces", "adds to"};
    switch (one.what) {
    case kind::step:
        switch (who.at) {
        case where::computing:
            return name + " comes to safe point " + std::to_string(who.n + 1);
        case where::counted:
            return name + " looks whether it is called";
        case where::calling:
            return name + " returns from a function of the program";
        case where::settling:
            return name + " settles the request";
        default:
            return name + " makes a step at safe point " + std::to_string(who.n);
        }
    case kind::impatient:
        return name + " has waited for some ms at safe point " + std::to_string(who.n);
    case kind::apply: {
        const operation &it = pending_[one.rank][one.index];
        return "rank 0 " + std::string(kOperations[static_cast<int>(it.what)]) + " the " +
               kPlaces[it.where] + " of " + name +
               (it.what == window::operation::read ? "" : ": " + std::to_string(it.value));
    }
    case kind::answer:
        return "rank 0 knows of " + name + "'s " + kPlaces[pending_[one.rank][one.index].where];
    case kind::ask:
        return "a request is made";
    case kind::ring:
        return "the socket's thread rings";
    case kind::expire:
        return "the socket's thread answers: too late";
    case kind::tick:
        return "time passes";
    case kind::conclude:
        return "all have met";
    case kind::end:
        return "all have finished";
    case kind::resume:
        return "(and " + name + " goes on with its step)";
    }
    return "";
}

bool world::is_time(std::size_t possibility) const
{
    return actions_.at(possibility).what == kind::tick;
}

int world::steps(std::size_t possibility) const
{
    const action &one = actions_.at(possibility);
    return one.what == kind::step || one.what == kind::resume ? one.rank : -1;
}

std::uint64_t world::fingerprint() const
{
    std::uint64_t sum = 1;
    const auto add = [&](auto value) { mix(sum, static_cast<std::uint64_t>(value)); };
    for (const auto &who : ranks_) {
        for (std::int64_t value : who->agreement->state())
            add(value);
        for (double value : who->meeting->state(now_))
            mix(sum, std::bit_cast<std::uint64_t>(value));
        add(who->at);
        add(who->n);
        add(who->left);
        add(who->waits * 2 + who->fresh);
    }
    for (const auto &queue : pending_) {
        add(queue.size());
        for (const operation &one : queue) {
            add(one.where);
            add(one.what);
            add(one.value);
            add(one.applied);
            add(one.was);
        }
    }
    socket_->print(sum);
    add(put_off_);
    add(functions_);
    add(heavy_);
    if (std::ranges::any_of(ranks_, [](const auto &who) { return who->at == where::calling; }))
        mix(sum, std::bit_cast<std::uint64_t>(std::min(now_ - called_, kPatience + 1)));
    add(met_);
    add(refused_);
    add(stepping_);
    if (stepping_ >= 0)
        for (std::int64_t value : accesses_)
            add(value);
    return sum;
}

/* ---- what happens ---- */

void world::run()
{
    while (!ended_ && !stopped_) {
        list_actions();
        pick();
        if (within_)
            throw violation(*within_);
    }
}

/** One of actions_. */
void world::pick()
{
    expect(!actions_.empty(), "nothing can happen any more, and not all have ended");
    const std::size_t chosen = decides_.choose(*this, actions_.size());
    if (!stopped_)
        perform(action(actions_.at(chosen)));
}

void world::perform(const action &one)
{
    switch (one.what) {
    case kind::step:
    case kind::impatient: {
        const bool outermost = stepping_ < 0;
        if (outermost) {
            stepping_ = one.rank;
            accesses_.clear();
        }
        step(one.rank, now_ + (one.what == kind::impatient ? kMoment : 0));
        if (outermost)
            stepping_ = -1;
        break;
    }
    case kind::apply:
        apply(pending_[one.rank][one.index]);
        break;
    case kind::answer:
        answer(pending_[one.rank][one.index]);
        break;
    case kind::ask:
        socket_->ask();
        break;
    case kind::ring:
        socket_->ring(*ranks_[0]->agreement);
        ranks_[0]->fresh = true;
        break;
    case kind::expire:
        socket_->expire();
        break;
    case kind::tick:
        now_ += kTick;
        for (auto &who : ranks_)
            who->fresh = true;
        break;
    case kind::conclude:
        conclude();
        break;
    case kind::end:
        end();
        break;
    case kind::resume:
        break;
    }
}

/** Within a step of rank @r all others may make steps, before its next access to its words. */
void world::between(int r) noexcept
{
    if (r != stepping_ || interrupted_ || accesses_.empty())
        return;
    interrupted_ = true;
    try {
        while (!stopped_ && !within_) {
            list_actions();
            const std::size_t chosen = decides_.choose(*this, actions_.size());
            if (stopped_ || actions_.at(chosen).what == kind::resume)
                break;
            perform(action(actions_.at(chosen)));
        }
    } catch (const violation &found) {
        within_ = found;
    }
    interrupted_ = false;
    accesses_.push_back(0); /* the next interruption is another one */
}

void world::access(int r, std::int64_t value) noexcept
{
    if (r == stepping_)
        accesses_.push_back(value);
}

void world::apply(operation &one)
{
    auto &word = ranks_[one.target]->agreement->own_words()[one.where];
    one.was = word;
    if (one.what == window::operation::replace)
        word = one.value;
    if (one.what == window::operation::add)
        word += one.value;
    one.applied = true;
    if (one.what != window::operation::read)
        ranks_[one.target]->fresh = true;
}

void world::answer(operation &one)
{
    if (!one.applied)
        apply(one);
    one.of->answered(one.index, one.was);
    ranks_[0]->fresh = true;
    auto &queue = pending_[one.target];
    queue.erase(queue.begin() + (&one - queue.data()));
}

void world::step(int r, double now)
{
    rank &who = *ranks_[r];
    switch (who.at) {
    case where::computing:
        if (who.n == what_.safe_points) {
            if (r == 0)
                socket_->close_door();
            who.agreement->never_again();
            who.at = where::finishing;
            break;
        }
        who.agreement->count(++who.n);
        who.at = where::counted;
        break;
    case where::counted:
        if (who.agreement->is_called())
            who.at = where::called;
        else
            leave(who);
        break;
    case where::called: {
        who.fresh = false;
        take(who, who.meeting->step(who.n, now), r);
        break;
    }
    case where::calling:
        who.fresh = false;
        who.at = where::called;
        take(who, who.meeting->meet_again("a function", kPatience, called_ + kPatience, now), r);
        break;
    case where::settling:
        if (r == 0)
            who.meeting->outcome("met");
        else
            who.meeting->settle();
        if (!stopped_ && !within_)
            leave(who);
        break;
    case where::met:
    case where::finishing:
        break;
    }
}

/** What it does after a step of its meeting. */
void world::take(rank &who, rendezvous::next next, int r)
{
    if (stopped_ || within_)
        return;
    who.waits = next == rendezvous::next::wait || next == rendezvous::next::again;
    who.fresh = who.fresh || next == rendezvous::next::again;
    if (next == rendezvous::next::go_on)
        leave(who);
    if (next == rendezvous::next::met)
        arrived_everywhere(r);
}

void world::leave(rank &who)
{
    for (const auto &one : ranks_)
        expect(who.at == where::settling || one->at != where::met,
               "a rank has left safe point " + std::to_string(who.n) +
                   ", and another has met there");
    who.left = who.n;
    who.at = where::computing;
    who.waits = false;
    who.fresh = true;
}

/** Rank @r is about to do what was asked for, together with all others. */
void world::arrived_everywhere(int r)
{
    rank &who = *ranks_[r];
    for (int other = 0; other < what_.ranks; other++) {
        const rank &one = *ranks_[other];
        const std::string names = "rank " + std::to_string(r) + " meets at safe point " +
                                  std::to_string(who.n) + ", and rank " + std::to_string(other);
        expect(one.n == who.n && one.left < one.n, names + " is elsewhere");
        expect(one.at == where::called || one.at == where::met, names + " does not know of it");
        expect(one.agreement->requests() == who.agreement->requests() &&
                   one.meeting->attempts() == who.meeting->attempts(),
               names + " at another meeting");
    }
    who.at = where::met;
}

void world::conclude()
{
    if (put_off_ > 0) {
        put_off_--;
        socket_->release();
        for (auto &who : ranks_) {
            who->meeting->put_off();
            who->at = where::settling;
            leave(*who);
        }
        return;
    }
    if (functions_ > 0) {
        functions_--;
        called_ = now_;
        for (auto &who : ranks_) {
            who->at = where::calling;
            who->waits = false;
        }
        return;
    }
    put_off_ = what_.put_off;
    functions_ = what_.functions;
    if (what_.mover >= 0) {
        const std::int64_t requests = ranks_[0]->agreement->requests();
        for (auto &who : ranks_)
            who->agreement->close();
        rank &moved = *ranks_[what_.mover];
        moved.agreement = std::make_unique<negotiation>();
        moved.meeting = meeting_of(what_.mover);
        moved.agreement->count(moved.n);
        moved.agreement->weigh(static_cast<std::uint64_t>(socket::state_of(what_.mover)));
        for (int r = 0; r < what_.ranks; r++)
            ranks_[r]->agreement->open(open(r), requests);
    }
    for (auto &who : ranks_)
        who->at = where::settling;
}

void world::end()
{
    if (socket_->is_taken())
        ranks_[0]->meeting->outcome("ended");
    for (auto &who : ranks_)
        who->agreement->close();
    expect(socket_->unanswered() == 0, "a request was not answered");
    ended_ = true;
}

} // namespace zc::migrate::sim
