/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace zc::migrate {

using nlohmann::json;

std::string describe_end(int status)
{
    if (WIFSIGNALED(status))
        return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
               strsignal(WTERMSIG(status)) + ")";
    return "has ended with exit status " + std::to_string(WEXITSTATUS(status));
}

launcher::launcher(std::size_t children, launcher_actions &by)
    : by_(by), states_(children, state::starting), ranks_(children, -1), news_(children),
      ends_(children), told_(children), over_(children == 0)
{
}

std::size_t launcher::count(state which) const
{
    return static_cast<std::size_t>(std::ranges::count(states_, which));
}

std::string launcher::name_of(std::size_t child) const
{
    return ranks_[child] < 0 ? "a rank" : "rank " + std::to_string(ranks_[child]);
}

void launcher::child_says(std::size_t child, const json &what)
{
    if (what.contains("port") && states_[child] == state::starting) {
        states_[child] = state::ready;
        news_[child] = what;
        by_.tell_leaver(child, what);
    } else if (what.contains("spawn")) {
        wanted_.push_back({child, what.value("spawn", ""), what.value("card", "")});
        if (wanted_.size() == 1)
            spawn_next();
    } else if (what.contains("rank") && states_[child] == state::chosen) {
        states_[child] = state::rank;
        if (what["rank"].is_number_integer())
            ranks_[child] = what["rank"];
    } else if (what.contains("abort") && is_rank(child)) {
        by_.abort_job(what.value("abort", 1));
    }
}

void launcher::spawn_next()
{
    if (!wanted_.empty())
        by_.spawn(wanted_.front().host, wanted_.front().card);
}

void launcher::spawned(const std::string &problem)
{
    if (wanted_.empty())
        return;
    const wanted done = wanted_.front();
    wanted_.pop_front();
    if (states_[done.child] != state::ended)
        by_.tell_child(done.child, {{"spawned", done.host}, {"problem", problem}});
    spawn_next();
}

void launcher::child_ended(std::size_t child, int status)
{
    const state before = states_[child];
    const bool was_rank = before == state::chosen || before == state::rank;
    states_[child] = state::ended;
    told_[child] = told_[child] || was_rank;
    if (!was_rank) {
        news_[child] = {{"ended", describe_end(status)}, {"stood_by", before == state::ready}};
        by_.tell_leaver(child, news_[child]);
    } else if (status != 0) {
        /* As of a process of the process manager's: a rank that ends so is the end of the job. */
        signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;
        over_ = true;
    } else {
        by_.guard_ranks(ranks());
    }
    look_for_end();
}

void launcher::look_for_end()
{
    over_ |= count(state::ended) == states_.size() &&
             std::ranges::count(told_, true) == static_cast<std::ptrdiff_t>(told_.size());
}

void launcher::leaver_says(std::size_t child, const json &what)
{
    if (what.contains("go")) {
        if (states_[child] == state::ended) {
            by_.tell_leaver(child, news_[child]);
            return;
        }
        if (ends_[child])
            return; /* child_ended() tells it */
        states_[child] = state::chosen;
        by_.guard_ranks(ranks());
        by_.tell_leaver(child, {{"noted", true}});
    } else if (what.contains("back") && states_[child] == state::chosen) {
        states_[child] = state::ready;
        by_.guard_ranks(ranks());
    } else if (what.contains("accept") && states_[child] == state::ready) {
        by_.tell_child(child, what);
    } else if (what.contains("leaver") && states_[child] != state::chosen &&
               states_[child] != state::rank) {
        if (!by_.change_leaver(child, what.value("leaver", "")))
            leaver_gone(child);
        else if (!news_[child].is_null())
            by_.tell_leaver(child, news_[child]);
    } else if (what.contains("end") && states_[child] != state::chosen) {
        leaver_gone(child);
    }
}

void launcher::leaver_gone(std::size_t child)
{
    if (states_[child] != state::rank && states_[child] != state::ended)
        by_.kill_child(child);
    told_[child] = true;
    look_for_end();
}

} // namespace zc::migrate
