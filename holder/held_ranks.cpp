/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/held_ranks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <deque>
#include <optional>
#include <poll.h>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <zmq.h>

#include "error.h"
#include "host_name.h"
#include "identity.h"
#include "line.h"
#include "loop.h"
#include "request_server.h"
#include "zch/ports.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr int kStatusSeconds = 10;
constexpr int kTurn = 20;       /* ms */
constexpr auto kStillHere = 1s; /* between signs, while others are waited for */

/** One question to another host, and its answer. */
class host_question {
  public:
    host_question(network &net, std::string place, nlohmann::json what)
        : place_(std::move(place)), number_(draw_identity()),
          socket_(net.connect(ZMQ_DEALER, place_))
    {
        what["number"] = number_;
        texts_.push_back(what.dump());
    }
    ~host_question() { zmq_close(socket_); }
    host_question(const host_question &) = delete;
    host_question &operator=(const host_question &) = delete;

    const std::string &place() const { return place_; }
    void *socket() const { return socket_; }
    const nlohmann::json &answer() const { return answer_; }
    bool is_answered() const { return !answer_.is_null(); }
    /** ZeroMQ takes what is to be said when it has a connection. */
    void pump()
    {
        while (!texts_.empty() &&
               zmq_send(socket_, texts_.front().data(), texts_.front().size(), ZMQ_DONTWAIT) >= 0)
            texts_.pop_front();
        for (auto parts = receive_parts(socket_); !parts.empty(); parts = receive_parts(socket_)) {
            auto said = nlohmann::json::parse(parts.back(), nullptr, false);
            if (!said.is_object() || said.value("number", std::uint64_t{0}) != number_)
                continue;
            if (is_answer(said))
                answer_ = std::move(said);
            else if (said.at("said") == "ready")
                ready_ = said.value("last", true);
        }
    }
    /** That the rank is ready, of a move, and whether for the last time: once for each time. */
    std::optional<bool> take_ready() { return std::exchange(ready_, {}); }
    /** Another word to the same question. */
    void say(const char *word)
    {
        texts_.push_back(nlohmann::json{{"do", word}, {"number", number_}}.dump());
    }

  private:
    std::string place_;
    std::deque<std::string> texts_;
    std::uint64_t number_;
    void *socket_;
    std::optional<bool> ready_;
    nlohmann::json answer_;
};

using questions = std::vector<std::unique_ptr<host_question>>;

/** Until all are answered, or @until, or @over says so, which is asked each turn, and when @wake_fd
 * is readable. */
void await(const questions &all, clock::time_point until, const std::function<bool()> &over = {},
           int wake_fd = -1)
{
    loop events;
    if (wake_fd >= 0)
        events.watch(wake_fd, POLLIN, [] {});
    for (const auto &each : all)
        events.watch(each->socket(), [] {});
    const auto waits = [](const auto &each) {
        each->pump();
        return !each->is_answered();
    };
    while (std::count_if(all.begin(), all.end(), waits) > 0 && clock::now() < until &&
           !(over && over()))
        events.turn(kTurn);
}

/** A rank that leaves together with others, or, nullptr, when it can. */
class departure {
  public:
    enum class word { NONE, WAIT, GO };
    explicit departure(leaves_with *others) : others_(others) {}
    void ready(bool last)
    {
        if (!others_)
            return;
        ready_ = true;
        others_->ready(last);
    }
    /** Each turn: what is to be said to who moves it. */
    word next()
    {
        if (!ready_)
            return word::NONE;
        if (others_->may_go_on()) {
            ready_ = false;
            return word::GO;
        }
        if (clock::now() < next_sign_)
            return word::NONE;
        next_sign_ = clock::now() + kStillHere;
        return word::WAIT;
    }
    /** When it is worth to ask again before the turn has ended; -1: never. */
    int wake_fd() const { return others_ ? others_->wake_fd() : -1; }

  private:
    leaves_with *others_;
    bool ready_ = false;
    clock::time_point next_sign_;
};

/** The answer of a zc-hold of this host, to a move. Throws error if there is none. */
nlohmann::json ask_door(const std::string &path, const nlohmann::json &what,
                        clock::time_point until, const std::function<bool()> &over,
                        departure &leaving)
{
    const descriptor fd = send_request(path, what);
    std::string text;
    while (clock::now() < until && !(over && over())) {
        std::array<pollfd, 2> both{{{fd.fd, POLLIN, 0}, {leaving.wake_fd(), POLLIN, 0}}};
        poll(both.data(), both.size(), kTurn);
        if (both[0].revents && receive_line(fd.fd, text) == received::end)
            throw error(ECONNRESET, path + ": zc-hold has ended");
        for (std::size_t end; (end = text.find('\n')) != std::string::npos;
             text.erase(0, end + 1)) {
            auto said = nlohmann::json::parse(text.substr(0, end), nullptr, false);
            if (!said.is_object())
                throw error(EBADMSG, path + ": zc-hold has answered what is no JSON");
            if (is_answer(said))
                return said;
            if (said.at("said") == "ready")
                leaving.ready(said.value("last", true));
        }
        /* It needs no other sign: it notices if this process is no more. */
        if (leaving.next() == departure::word::GO)
            tell_door(fd.fd, {{"do", "go"}});
    }
    throw error(ETIMEDOUT, path + " gives no answer in time; the move may go on");
}

int number_in(const std::string &text)
{
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

held_rank to_rank(const nlohmann::json &said, const std::string &home, const std::string &asked_at)
{
    held_rank one;
    one.job = said.value("job", "");
    one.first = said.value("first", one.job);
    one.rank = number_in(said.value("rank", "0"));
    one.size = said.value("size", 0);
    one.pid = said.value("pid", 0);
    one.host = said.value("host", "");
    one.place = said.value("place", "");
    one.moving = said.value("moving", false);
    one.home = home;
    one.asked_at = asked_at;
    return one;
}

held_move to_move(const nlohmann::json &said)
{
    held_move one;
    one.ok = said.value("ok", false);
    one.again = said.value("again", false);
    one.other_host = said.value("other_host", false);
    one.why = said.value("why", one.ok ? "" : "no reason is given");
    if (said.contains("refused") && !said.at("refused").empty())
        one.why = said.at("refused").front();
    one.ms = said.value("ms", 0.0);
    one.copy_ms = said.value("copy_ms", 0.0);
    one.wait_ms = said.value("wait_ms", 0.0);
    one.copied = said.value("copied", std::uint64_t{0});
    one.rounds = said.value("rounds", 0u);
    one.copy_ended = said.value("copy_ended", "");
    one.late_ms = said.value("late_ms", 0.0);
    one.leave_ms = said.value("leave_ms", 0.0);
    one.dump_ms = said.value("dump_ms", 0.0);
    one.send_ms = said.value("send_ms", 0.0);
    one.restore_ms = said.value("restore_ms", 0.0);
    one.bind_ms = said.value("bind_ms", 0.0);
    one.bytes = said.value("bytes", std::uint64_t{0});
    one.bytes_there = said.value("bytes_there", std::uint64_t{0});
    return one;
}

std::vector<held_rank> ranks_of_this_host()
{
    std::vector<held_rank> found;
    for (const std::string &path : request_sockets()) {
        try {
            found.push_back(
                to_rank(request(path, {{"do", "status"}}, kStatusSeconds), host_name(), ""));
        } catch (const error &) {
            continue; /* it has ended meanwhile, or was killed and has left its socket */
        }
    }
    return found;
}

/** One host may have been asked by several names. */
void sort_each_once(std::vector<held_rank> &ranks)
{
    const auto name_of = [](const held_rank &one) {
        return std::tie(one.job, one.rank, one.home, one.pid);
    };
    std::stable_sort(ranks.begin(), ranks.end(), [&](const held_rank &a, const held_rank &b) {
        return name_of(a) < name_of(b);
    });
    ranks.erase(std::unique(ranks.begin(), ranks.end(),
                            [&](const held_rank &a, const held_rank &b) {
                                return name_of(a) == name_of(b);
                            }),
                ranks.end());
}

} // namespace

held_ranks::held_ranks(std::string key_file) : key_file_(std::move(key_file)) {}
held_ranks::~held_ranks() = default;

network &held_ranks::the_network()
{
    const std::lock_guard lock(mutex_);
    if (!network_)
        network_ = std::make_unique<network>(read_keys(key_file_));
    return *network_;
}

held_survey held_ranks::look(const std::vector<std::string> &places,
                             std::chrono::milliseconds patience)
{
    held_survey all;
    all.ranks = ranks_of_this_host();
    std::set<std::string> asked, next;
    for (const std::string &place : places)
        next.insert(listener_at(place));
    const auto add_places = [&] {
        for (const held_rank &each : all.ranks) {
            if (!each.place.empty() && !asked.contains(each.place))
                next.insert(each.place);
        }
    };
    for (add_places(); !next.empty(); add_places()) {
        questions open;
        for (const std::string &place : std::exchange(next, {})) {
            asked.insert(place);
            open.push_back(std::make_unique<host_question>(the_network(), place,
                                                           nlohmann::json{{"do", "ranks"}}));
        }
        await(open, clock::now() + patience);
        for (const auto &each : open) {
            if (!each->is_answered()) {
                all.silent.push_back(each->place());
                continue;
            }
            const std::string name = each->answer().value("host", "");
            all.hosts.emplace(each->place(), name);
            for (const auto &said : each->answer().value("ranks", nlohmann::json::array()))
                all.ranks.push_back(to_rank(said, name, each->place()));
        }
    }
    sort_each_once(all.ranks);
    return all;
}

std::set<std::string> held_ranks::that_listen(const std::set<std::string> &places,
                                              std::chrono::milliseconds patience)
{
    questions open;
    for (const std::string &place : places)
        open.push_back(std::make_unique<host_question>(the_network(), listener_at(place),
                                                       nlohmann::json{{"do", "ranks"}}));
    await(open, clock::now() + patience);
    std::set<std::string> found;
    for (const auto &each : open) {
        if (each->is_answered())
            found.insert(each->place());
    }
    return found;
}

held_move held_ranks::move(const held_rank &which, const std::string &to,
                           std::chrono::milliseconds patience, const std::function<bool()> &over,
                           leaves_with *others, std::chrono::milliseconds within)
{
    nlohmann::json what = {{"do", "move"}, {"to", to}};
    if (within.count() > 0)
        what["within_ms"] = within.count();
    if (!which.host.empty())
        what["from"] = which.host;
    if (others) {
        what["waits_ms"] = others->longest().count();
        what["with"] = others->ranks();
    }
    departure leaving(others);
    if (which.asked_at.empty()) {
        const std::string door = request_socket_of(which.pid);
        if (door.empty())
            throw error(ESRCH, "its zc-hold has ended");
        return to_move(ask_door(door, what, clock::now() + patience, over, leaving));
    }
    what["pid"] = which.pid;
    questions one;
    one.push_back(std::make_unique<host_question>(the_network(), which.asked_at, what));
    const auto each_turn = [&] {
        if (const std::optional<bool> last = one.front()->take_ready())
            leaving.ready(*last);
        const departure::word word = leaving.next();
        if (word != departure::word::NONE)
            one.front()->say(word == departure::word::GO ? "go" : "wait");
        return over && over();
    };
    await(one, clock::now() + patience, each_turn, leaving.wake_fd());
    if (!one.front()->is_answered())
        throw error(ETIMEDOUT, which.asked_at + " gives no answer in time; the move may go on");
    return to_move(one.front()->answer());
}

} // namespace zc::holder
