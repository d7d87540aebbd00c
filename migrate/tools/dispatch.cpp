/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include <algorithm>
#include <csignal>

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr std::size_t kSeeds = 8; /* one that answers is enough */

std::string list(const std::vector<std::string> &names)
{
    constexpr std::size_t kShown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); i++)
        text += (i ? ", " : "") + names[i];
    if (names.size() > kShown)
        text += " and " + std::to_string(names.size() - kShown) + " more";
    return text;
}

} // namespace

dispatch::dispatch(std::vector<std::string> hosts, json order, double wait_s, bool finds,
                   dispatch_actions &by)
    : hosts_(std::move(hosts)), order_(std::move(order)), wait_s_(wait_s), by_(by), finds_(finds),
      states_(hosts_.size(), state::waiting), is_found_(hosts_.size()), addresses_(hosts_.size())
{
    order_["agents"] = hosts_.size();
    order_["seeds"] = json::array();
}

std::size_t dispatch::count(state which) const
{
    return static_cast<std::size_t>(std::ranges::count(states_, which));
}

void dispatch::begin(double now)
{
    since_ = now;
    if (finds_) {
        at_ = phase::looking;
        look_on_some();
    } else {
        start_some();
    }
}

void dispatch::look_on_some()
{
    json order = {{"version", order_["version"]}, {"find", true}};
    for (const char *what : {"config", "sockets"})
        if (order_.contains(what))
            order[what] = order_[what];
    for (std::size_t i = 0; i < states_.size() && count(state::asked) < kAtOnce; i++) {
        if (states_[i] != state::waiting)
            continue;
        states_[i] = state::asked;
        by_.start_agent(i, order);
    }
}

void dispatch::note_search(std::size_t agent, const json &what, double now)
{
    if (states_[agent] != state::asked || !what.contains("found"))
        return;
    states_[agent] = state::none_there;
    if (what["found"] == true) {
        const std::string profiles = what.value("profiles", ""), mode = what.value("mode", "");
        if (profiles.empty() || !what.contains("address") || !what.contains("secret")) {
            by_.say("the agent that runs on " + hosts_[agent] + " cannot be used");
            return end(1, now);
        }
        if (profiles_.empty()) {
            profiles_ = profiles;
            socket_ = what.value("socket", "");
            for (const char *key : {"public", "secret"})
                order_[key] = what[key];
        } else if (profiles != profiles_ || what["secret"] != order_["secret"]) {
            by_.say("the agents that run on " + hosts_[agent] +
                    " and on hosts before it have other keys, or read of ranks in other "
                    "directories: a job can have but one");
            return end(1, now);
        }
        if (mode != order_.value("mode", mode))
            by_.say("the agent that runs on " + hosts_[agent] + " has a mode of its own: " + mode);
        states_[agent] = state::ready;
        is_found_[agent] = true;
        addresses_[agent] = what["address"];
        if (order_["seeds"].size() < kSeeds)
            order_["seeds"].push_back(what["address"]);
    }
    look_on_some();
    if (count(state::waiting) + count(state::asked) == 0)
        begin_after_search();
}

void dispatch::begin_after_search()
{
    at_ = profiles_.empty() ? phase::first : phase::others;
    if (!profiles_.empty())
        order_["profiles"] = profiles_;
    start_some();
    introduce_found();
}

/** Those that were found are told whom they are to know, once that is known of all. */
void dispatch::introduce_found()
{
    if (has_introduced_ || profiles_.empty() ||
        count(state::ready) + count(state::together) < states_.size())
        return;
    has_introduced_ = true;
    for (std::size_t i = 0; i < states_.size(); i++)
        if (is_found_[i])
            by_.tell_agent(i, {{"others", addresses_}});
}

/** The first alone, unless one was found: it makes the key, and the others join by it. */
void dispatch::start_some()
{
    const std::size_t most = at_ == phase::first ? 1 : kAtOnce;
    for (std::size_t i = 0; i < states_.size() && count(state::starting) < most; i++) {
        const state before = states_[i];
        if (before != state::waiting && before != state::none_there)
            continue;
        states_[i] = state::starting;
        json order = order_;
        order["host"] = hosts_[i];
        if (before == state::none_there)
            by_.tell_agent(i, order);
        else
            by_.start_agent(i, order);
    }
}

void dispatch::agent_prints(std::size_t agent, const std::string &line, double now)
{
    const json what = json::parse(line, nullptr, false);
    if (what.is_object())
        return agent_says(agent, what, now);
    /* A greeting of the host may run into what the agent says, or a line be cut: its key is for
     * nobody's eyes, and what is printed here may end in a log. */
    const bool may_have_key = line.find("secret") != std::string::npos;
    by_.say(hosts_[agent] + ": " + (may_have_key ? "what the agent says is not understood" : line));
}

void dispatch::agent_says(std::size_t agent, const json &what, double now)
{
    if (at_ == phase::looking)
        return note_search(agent, what, now);
    if (!is_before_job())
        return;
    if (states_[agent] == state::starting && what.contains("address")) {
        states_[agent] = state::ready;
        addresses_[agent] = what["address"];
        if (at_ == phase::first) {
            if (!what.contains("public") || !what.contains("secret")) {
                by_.say("the agent on " + hosts_[agent] + " has made no key");
                return end(1, now);
            }
            at_ = phase::others;
            order_["seeds"] = {what["address"]};
            order_["public"] = what["public"];
            order_["secret"] = what["secret"];
            socket_ = what.value("socket", "");
        }
        start_some();
        introduce_found();
    } else if (states_[agent] == state::ready && what.value("together", false)) {
        states_[agent] = state::together;
    }
    if (count(state::together) < states_.size())
        return;
    at_ = phase::running;
    std::vector<std::string> found;
    for (std::size_t i = 0; i < hosts_.size(); i++)
        if (is_found_[i])
            found.push_back(hosts_[i]);
    by_.say("agents on " + list(hosts_) + " (zcctl nodes --agent " + socket_ + ")" +
            (found.empty() ? "" : "; found, and not to be ended: those on " + list(found)));
    by_.start_job(profiles_);
}

void dispatch::agent_ended(std::size_t agent, const std::string &how, double now)
{
    const bool was_asked = at_ == phase::ending;
    states_[agent] = state::ended;
    if (!was_asked)
        by_.say("the agent on " + hosts_[agent] + " " + how +
                (at_ == phase::running ? "; the job goes on, and no agent decides about its ranks "
                                         "there"
                                       : ", and so the job is not started"));
    if (is_before_job())
        return end(1, now);
    end_if_none_is_left();
}

void dispatch::job_ended(int status, double now)
{
    if (at_ == phase::running)
        end(status, now);
}

void dispatch::signalled(int signal, double now)
{
    switch (at_) {
    case phase::looking:
    case phase::first:
    case phase::others:
        return end(128 + signal, now);
    case phase::running:
        return by_.signal_job(signal);
    case phase::ending:
        since_ = now - kPolite; /* nothing more to wait for */
        return tick(now);
    case phase::over:
        return;
    }
}

void dispatch::end(int status, double now)
{
    at_ = phase::ending;
    status_ = status;
    since_ = now;
    for (std::size_t i = 0; i < states_.size(); i++) {
        if (states_[i] == state::waiting)
            states_[i] = state::ended;
        else if (states_[i] != state::ended)
            by_.release_agent(i);
    }
    end_if_none_is_left();
}

void dispatch::end_if_none_is_left()
{
    if (at_ == phase::ending && count(state::ended) == states_.size())
        at_ = phase::over;
}

void dispatch::tick(double now)
{
    if (is_before_job() && now - since_ >= wait_s_) {
        for (std::size_t i = 0; i < states_.size(); i++) {
            if (states_[i] == state::starting || states_[i] == state::asked)
                by_.say("the agent on " + hosts_[i] + " does not answer");
            else if (states_[i] == state::ready)
                by_.say("the agent on " + hosts_[i] +
                        " does not find all others: can their "
                        "ports be reached? (agent.listen)");
        }
        by_.say("the job is not started, as agents were not there in time (--agents-wait)");
        return end(1, now);
    }
    if (at_ != phase::ending)
        return;
    const int wanted = now - since_ >= kPolite + kFirm ? 2 : now - since_ >= kPolite ? 1 : 0;
    if (pressed_ >= wanted)
        return;
    pressed_ = wanted;
    for (std::size_t i = 0; i < states_.size(); i++) {
        if (states_[i] == state::ended)
            continue;
        by_.say("the agent on " + hosts_[i] + " does not end");
        by_.kill_agent(i, wanted == 1 ? SIGTERM : SIGKILL);
    }
}

} // namespace zc::migrate
