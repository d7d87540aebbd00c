/* SPDX-License-Identifier: BSD-3-Clause */
#include "move_transaction.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "lineage.h"
#include "process.h"
#include "test_wait.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

/** The answer to a move that was asked for at @asked: @text, and what it took, @told. */
std::string completed(json text, const effort_of_all &told, double asked)
{
    json &phases = text["phases_ms"];
    phases["spawn"] = told.most[0];
    phases["checkpoint"] = told.most[1];
    phases["transfer"] = told.most[2];
    phases["restore"] = told.most[3];
    text["bytes"] = {{"image", told.sum[0]}, {"zero", told.sum[1]}, {"data", told.sum[2]}};
    text["response_ms"] = (seconds() - asked) * 1e3;
    return text.dump();
}

} // namespace

move_transaction::move_transaction(move_party &party, const settings &chosen, const request &wanted,
                                   greeting hello)
    : party_(party), settings_(chosen), wanted_(wanted), greeting_(std::move(hello)),
      begin_(seconds())
{
}

move_transaction::~move_transaction()
{
    /* What could not be brought to its end is still under way, to a peer that may wake up. */
    if (image_ && mine_ && mine_->is_under_way())
        image_->give_away();
}

bool move_transaction::run()
{
    phase now = phase::spawn;
    while (now < phase::link_up && now != phase::refused)
        now = perform(now);
    if (now == phase::refused)
        return false;
    /* The others wait for this rank in MPI from here on: it cannot report an error and go on. */
    try {
        while (now != phase::done)
            now = perform(now);
    } catch (const std::exception &problem) {
        party_.end_job("the move was agreed on, but " + reason_of(problem));
    }
    return true;
}

/** In the job's first move, a test does to its processes what it likes while a leaver waits here.
 */
void move_transaction::wait_for_test(phase now) const
{
    constexpr fault kWaits[] = {fault::waits_in_spawn, fault::waits_in_data,
                                fault::waits_in_verdict, fault::waits_in_link_up,
                                fault::waits_in_rebuild};
    if (now > phase::rebuild || greeting_.moves > 1 || party_.rank() != greeting_.leavers.front() ||
        !settings_.fault_injected(kWaits[static_cast<int>(now)]))
        return;
    migrate::wait_for_test(settings_.checkpoint_directory, [this] { party_.make_progress(); });
}

move_transaction::phase move_transaction::perform(phase now)
{
    wait_for_test(now);
    switch (now) {
    case phase::spawn:
        return spawn();
    case phase::data:
        return hand_over();
    case phase::verdict:
        return decide();
    case phase::link_up:
        return link_up();
    case phase::rebuild:
        return rebuild();
    case phase::done:
    case phase::refused:
        break;
    }
    return now;
}

/** A step of this rank alone; what goes wrong in it is told to all when they agree. */
template <typename Step>
void move_transaction::attempt(Step step)
{
    try {
        step();
    } catch (const std::exception &problem) {
        complaint_ = "rank " + std::to_string(party_.rank()) + ": " + reason_of(problem);
    }
}

move_transaction::phase move_transaction::spawn()
{
    const bool is_leaver = std::ranges::count(greeting_.leavers, party_.rank()) > 0;
    std::string mine;
    if (is_leaver)
        attempt([&] {
            mine = party_.invite();
            if (wanted_.via == request::way::disk)
                write_file();
            if (wanted_.via == request::way::image)
                image_ = std::make_unique<state_image>(party_.data(), party_.header());
        });
    const std::vector<std::string> all = party_.gather(mine);
    if (party_.rank() == 0)
        attempt([&] { party_.introduce(all); });
    if (is_leaver && complaint_.empty())
        attempt([&] {
            mine_ = party_.start_successor(all);
            mine_->await();
        });
    const std::string verdict = party_.agree(complaint_);
    if (!verdict.empty())
        return refuse(verdict);
    return greeting_.others_run ? phase::verdict : phase::data;
}

void move_transaction::write_file()
{
    file_ = std::make_unique<state_file>(settings_.checkpoint_directory + "/moving-" +
                                             digits_of(greeting_.identity) + "-rank-" +
                                             std::to_string(party_.rank()) + ".h5",
                                         party_.data(), party_.header());
}

move_transaction::phase move_transaction::hand_over()
{
    if (greeting_.others_run) {
        serve();
        measure();
        party_.part();
        leave();
        return phase::done;
    }
    if (leaves())
        attempt([this] {
            mine_->proceed();
            serve();
        });
    measure();
    return phase::verdict;
}

/** A leaver: its data. */
void move_transaction::serve()
{
    const auto wait = [this](double limit_s) {
        for (const double late = seconds() + limit_s; seconds() < late;)
            party_.make_progress();
    };
    if (settings_.fault_injected(fault::corrupt_early) && greeting_.index > 0)
        wait(kFarewell + 2);
    mine_->serve(party_.data(), party_.header(), file_.get(), image_.get());
    if (settings_.fault_injected(fault::successor_killed_ready))
        wait(1);
}

/** Collective: of all ranks, or of those that late_report has. */
void move_transaction::measure()
{
    const effort spent = leaves() ? mine_->spent() : effort{};
    told_.most = party_.greatest(
        {leaves() ? mine_->spawn_ms() : 0.0, spent.build_ms, spent.transfer_ms, spent.restore_ms});
    told_.sum =
        party_.total({static_cast<double>(spent.image_bytes), static_cast<double>(spent.zero_bytes),
                      leaves() ? static_cast<double>(party_.data().bytes()) : 0.0});
}

move_transaction::phase move_transaction::decide()
{
    /* Where the others run, all have just agreed. */
    std::string verdict = greeting_.others_run ? "" : party_.agree(complaint_);
    if (!verdict.empty())
        return refuse(verdict);
    /* It may have ended since it has acknowledged: then nothing is lost yet. */
    if (leaves())
        attempt([this] { mine_->commit(); });
    verdict = party_.agree(complaint_);
    return verdict.empty() ? phase::link_up : refuse(verdict);
}

move_transaction::phase move_transaction::refuse(const std::string &why)
{
    if (leaves())
        mine_->abandon();
    file_.reset();
    party_.outcome(control::refusal(EIO, why));
    return phase::refused;
}

/* All successors have all: from here on they are the ranks. */
move_transaction::phase move_transaction::link_up()
{
    if (leaves() && settings_.fault_injected(fault::leaver_dies))
        raise(SIGKILL);
    if (leaves()) {
        party_.let_go();
        if (greeting_.others_run)
            mine_->proceed();
        mine_->go();
    }
    committed_ = seconds();
    party_.link_up(mine_.get());
    return phase::rebuild;
}

move_transaction::phase move_transaction::rebuild()
{
    party_.release();
    party_.give_up_old_world();
    if (!leaves())
        party_.enter_new_world();
    if (leaves()) {
        if (greeting_.others_run)
            return phase::data;
        leave();
        return phase::done;
    }
    const std::vector<double> rebuilt = party_.rebuild_world(committed_);
    if (party_.rank() == 0)
        answer(rebuilt);
    return phase::done;
}

/** Rank 0, which stays. */
void move_transaction::answer(const std::vector<double> &rebuilt)
{
    json text = report(rebuilt);
    if (!greeting_.others_run)
        party_.outcome(completed(std::move(text), told_, party_.asked()));
    else /* when this object is no more */
        party_.report_later(
            [text = std::move(text), asked = party_.asked()](const effort_of_all &told) {
                return completed(text, told, asked);
            });
}

void move_transaction::leave()
{
    try {
        if (party_.rank() == 0) {
            /* The new rank 0 has a socket by now; the request is still ours to answer. */
            const auto rebuilt = understood(
                "what the new rank 0 has done", mine_->line().receive(kNoLimit).text,
                [](const json &done) { return done.at("rebuilt").get<std::vector<double>>(); });
            /* Who has found this socket would be told that the job has ended. */
            party_.close_door();
            party_.outcome(completed(report(rebuilt), told_, party_.asked()));
            party_.close_socket();
        }
        mine_->line().disconnect();
    } catch (const std::exception &problem) {
        complain(party_.rank(), "moved away, and then: " + reason_of(problem));
    }
    file_.reset();
    party_.leave();
}

/** What of it is known when the new world is there. @rebuilt: what rebuild_world() has returned. */
json move_transaction::report(const std::vector<double> &rebuilt) const
{
    const double asked = party_.asked();
    json text = {{"ok", true},
                 {"command", "move"},
                 {"via", control::name_of(wanted_.via)},
                 {"others", greeting_.others_run ? "run" : "wait"},
                 {"safe_point", greeting_.safe_points},
                 {"epoch", greeting_.moves + 1},
                 {"phases_ms",
                  {{"negotiation", (begin_ - asked) * 1e3},
                   {"start", (party_.examined() - asked) * 1e3},
                   {"rebuild", rebuilt[0]}}},
                 {"stall_ms", rebuilt[1]}};
    for (const request::target &one : wanted_.moves)
        text["moved"].push_back({{"rank", one.rank}, {"host", one.host}});
    return text;
}

} // namespace zc::migrate
