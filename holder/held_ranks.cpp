/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/held_ranks.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
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

constexpr int kStatusSeconds = 10;
constexpr int kTurn = 20; /* ms */

/** One question to another host, and its answer. */
class host_question {
  public:
    host_question(network &net, std::string place, nlohmann::json what)
        : place_(std::move(place)), number_(draw_identity()),
          socket_(net.connect(ZMQ_DEALER, place_))
    {
        what["number"] = number_;
        text_ = what.dump();
    }
    ~host_question() { zmq_close(socket_); }
    host_question(const host_question &) = delete;
    host_question &operator=(const host_question &) = delete;

    const std::string &place() const { return place_; }
    void *socket() const { return socket_; }
    const nlohmann::json &answer() const { return answer_; }
    bool is_answered() const { return !answer_.is_null(); }
    /** ZeroMQ takes the question when it has a connection. */
    void pump()
    {
        if (!text_.empty() && zmq_send(socket_, text_.data(), text_.size(), ZMQ_DONTWAIT) >= 0)
            text_.clear();
        for (auto parts = receive_parts(socket_); !parts.empty(); parts = receive_parts(socket_)) {
            auto said = nlohmann::json::parse(parts.back(), nullptr, false);
            if (said.is_object() && said.value("number", std::uint64_t{0}) == number_)
                answer_ = std::move(said);
        }
    }

  private:
    std::string place_, text_;
    std::uint64_t number_;
    void *socket_;
    nlohmann::json answer_;
};

using questions = std::vector<std::unique_ptr<host_question>>;

/** Until all are answered, or @until, or it is @over. */
void await(const questions &all, clock::time_point until, const std::function<bool()> &over = {})
{
    loop events;
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
    one.copied = said.value("copied", std::uint64_t{0});
    one.rounds = said.value("rounds", 0u);
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

bool held_ranks::listens(const std::string &place, std::chrono::milliseconds patience)
{
    questions one;
    one.push_back(std::make_unique<host_question>(the_network(), listener_at(place),
                                                  nlohmann::json{{"do", "ranks"}}));
    await(one, clock::now() + patience);
    return one.front()->is_answered();
}

held_move held_ranks::move(const held_rank &which, const std::string &to,
                           std::chrono::milliseconds patience, const std::function<bool()> &over)
{
    if (which.asked_at.empty()) {
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
        const std::string door = request_socket_of(which.pid);
        if (door.empty())
            throw error(ESRCH, "its zc-hold has ended");
        return to_move(
            request(door, {{"do", "move"}, {"to", to}}, static_cast<int>(seconds), over));
    }
    questions one;
    one.push_back(std::make_unique<host_question>(
        the_network(), which.asked_at,
        nlohmann::json{{"do", "move"}, {"pid", which.pid}, {"to", to}}));
    await(one, clock::now() + patience, over);
    if (!one.front()->is_answered())
        throw error(ETIMEDOUT, which.asked_at + " gives no answer in time; the move may go on");
    return to_move(one.front()->answer());
}

} // namespace zc::holder
