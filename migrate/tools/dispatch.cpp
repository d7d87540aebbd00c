/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include <algorithm>
#include <csignal>

namespace zc::migrate {

using nlohmann::json;

namespace {

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

dispatch::dispatch(std::vector<std::string> hosts, json order, double wait_s, dispatch_actions &by)
    : hosts_(std::move(hosts)), order_(std::move(order)), wait_s_(wait_s), by_(by),
      states_(hosts_.size(), state::waiting)
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
    start_some();
}

/** The first alone: it makes the key, and the others join by it. */
void dispatch::start_some()
{
    const std::size_t most = at_ == phase::first ? 1 : kAtOnce;
    for (std::size_t i = 0; i < states_.size() && count(state::starting) < most; i++) {
        if (states_[i] != state::waiting)
            continue;
        states_[i] = state::starting;
        json order = order_;
        order["host"] = hosts_[i];
        by_.start_agent(i, order);
    }
}

void dispatch::agent_says(std::size_t agent, const json &what, double now)
{
    if (at_ != phase::first && at_ != phase::others)
        return;
    if (states_[agent] == state::starting && what.contains("address")) {
        states_[agent] = state::ready;
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
    } else if (states_[agent] == state::ready && what.value("together", false)) {
        states_[agent] = state::together;
    }
    if (count(state::together) < states_.size())
        return;
    at_ = phase::running;
    by_.say("agents on " + list(hosts_) + " (zcctl nodes --agent " + socket_ + ")");
    by_.start_job();
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
    if (at_ == phase::first || at_ == phase::others)
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
    if ((at_ == phase::first || at_ == phase::others) && now - since_ >= wait_s_) {
        for (std::size_t i = 0; i < states_.size(); i++) {
            if (states_[i] == state::starting)
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
