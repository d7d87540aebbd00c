/* SPDX-License-Identifier: BSD-3-Clause */
#include "move_transaction.h"

#include <csignal>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "error.h"
#include "job.h"
#include "process.h"
#include "profiler.h"
#include "watchdog.h"

namespace zc::migrate {

using nlohmann::json;

move_transaction::move_transaction(job &of, const request &wanted)
    : job_(of), wanted_(wanted), begin_(seconds()), safe_point_(of.safe_points_.load()),
      epoch_(of.epoch() + 1)
{
    greeting_.moved = true;
    greeting_.rank = of.now_.rank;
    greeting_.safe_points = safe_point_;
    greeting_.requests = of.agreement_.requests();
    greeting_.job = of.name_;
    greeting_.identity = of.identity_;
    greeting_.line = of.line_;
    greeting_.moves = of.moves_ + 1;
    greeting_.age_s = seconds() - of.begun_;
    greeting_.hosts = of.hosts_;
    for (const request::target &one : wanted.moves) {
        if (one.rank == of.now_.rank) {
            greeting_.index = static_cast<int>(greeting_.leavers.size());
            target_ = {one.host, !of.hosts_.contains(one.host)};
        }
        greeting_.leavers.push_back(one.rank);
    }
}

void move_transaction::run()
{
    for (phase now = phase::spawn; now != phase::done && now != phase::refused;)
        now = perform(now);
}

move_transaction::phase move_transaction::perform(phase now)
{
    switch (now) {
    case phase::spawn:
        return spawn();
    case phase::link_up:
        return link_up();
    case phase::data:
        return hand_over();
    case phase::verdict:
        return decide();
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
        complaint_ = "rank " + std::to_string(job_.now_.rank) + ": " + problem.what();
    }
}

move_transaction::phase move_transaction::spawn()
{
    if (!target_.name.empty())
        attempt([this] {
            job_.join_writer();
            job_.data.check_mapped();
            mine_ = std::make_unique<departure>(job_.settings_, job_.command_, target_, greeting_);
            mine_->await();
        });
    const std::string verdict = agree(job_.now_.ours, complaint_);
    return verdict.empty() ? phase::link_up : refuse(verdict);
}

move_transaction::phase move_transaction::link_up()
{
    const double begin = seconds();
    growth how;
    how.old = &job_.now_;
    how.leavers = greeting_.leavers;
    how.rank = job_.now_.rank;
    next_ = job_.link_up(how, mine_.get());
    link_up_ms_ = ms_since(begin);
    return phase::data;
}

move_transaction::phase move_transaction::hand_over()
{
    if (wanted_.via_disk)
        file_ = job_.settings_.checkpoint_directory + "/moving-" + digits_of(job_.identity_) +
                "-rank-" + std::to_string(job_.now_.rank) + ".h5";
    if (leaves())
        attempt([this] {
            if (job_.settings_.fault_injected(fault::corrupt_early) && greeting_.index > 0)
                for (const double late = seconds() + kFarewell + 2; seconds() < late;)
                    make_progress();
            mine_->serve(job_.data, job_.header(), file_);
        });
    measure();
    return phase::verdict;
}

/** Collective. */
void move_transaction::measure()
{
    const effort spent = leaves() ? mine_->spent() : effort{};
    most_ = greatest(job_.now_.ours, {leaves() ? mine_->spawn_ms() : 0.0, spent.build_ms,
                                      spent.transfer_ms, spent.restore_ms, link_up_ms_});
    sum_ = total(job_.now_.ours,
                 {static_cast<double>(spent.image_bytes), static_cast<double>(spent.zero_bytes),
                  leaves() ? static_cast<double>(job_.data.bytes()) : 0.0});
}

move_transaction::phase move_transaction::decide()
{
    const std::string verdict = agree(job_.now_.ours, complaint_);
    return verdict.empty() ? phase::rebuild : refuse(verdict);
}

move_transaction::phase move_transaction::refuse(const std::string &why)
{
    if (leaves()) {
        mine_->abandon();
        if (!file_.empty())
            unlink(file_.c_str());
    }
    next_.forget();
    job_.meeting_.outcome(refusal(EIO, why));
    return phase::refused;
}

/* All successors have all: from here on they are the ranks. */
move_transaction::phase move_transaction::rebuild()
{
    if (leaves() && job_.settings_.fault_injected(fault::leaver_dies))
        raise(SIGKILL);
    if (leaves())
        job_.lock_.reset(); /* of rank 0: its successor takes it when it saves */
    {
        /* Nobody can do without another until the old world is gone. */
        const watchdog guard(job_.settings_.timeout_s,
                             "the move was agreed on, but a process died before it was done");
        give_up_old_world();
        if (!leaves())
            enter_new_world();
    }
    if (leaves())
        leave();
    const std::vector<double> rebuilt = job_.rebuild_world(committed_);
    if (job_.now_.rank == 0)
        job_.meeting_.outcome(report(rebuilt));
    return phase::done;
}

/** Collective over the old world. */
void move_transaction::give_up_old_world()
{
    if (leaves()) {
        try {
            mine_->go();
        } catch (const error &problem) {
            end_job(job_.now_.rank, std::string("state handed over, but ") + problem.what());
        }
    }
    committed_ = seconds();
    if (leaves())
        profiler::instance().close();
    if (job_.release)
        job_.release(job_.now_.user, job_.argument);
    job_.agreement_.close();
    job_.now_.disconnect();
}

/** Collective over the new world, its successors included. */
void move_transaction::enter_new_world()
{
    job_.now_ = next_;
    job_.moves_++;
    profiler::instance().link(job_.now_.user);
    job_.open_agreement(greeting_.requests);
    job_.meeting_.settle();
}

void move_transaction::leave()
{
    try {
        if (job_.now_.rank == 0) {
            /* The new rank 0 has a socket by now; whoever asked is still ours to answer. */
            const json done = json::parse(mine_->line().receive(kNoLimit).text);
            /* Who has found this socket would be told that the job has ended. */
            job_.control_.close_door("rank 0 has moved: ask again");
            job_.meeting_.outcome(report(done.at("rebuilt")));
            job_.control_.close();
        }
        mine_->line().disconnect();
    } catch (const std::exception &problem) {
        complain(job_.now_.rank, std::string("moved away, and then: ") + problem.what());
    }
    if (!file_.empty())
        unlink(file_.c_str());
    end_progress();
    MPI_Finalize();
    leave_process(leaving::moved);
}

/** @rebuilt: what rebuild_world() has returned. */
std::string move_transaction::report(const std::vector<double> &rebuilt) const
{
    const double now = seconds(), asked = job_.control_.asked();
    json text = {{"ok", true},
                 {"command", "move"},
                 {"via", wanted_.via_disk ? "disk" : "memory"},
                 {"safe_point", safe_point_},
                 {"epoch", epoch_},
                 {"bytes", {{"data", sum_[2]}, {"image", sum_[0]}, {"zero", sum_[1]}}},
                 {"phases_ms",
                  {{"negotiation", (begin_ - asked) * 1e3},
                   {"spawn", most_[0]},
                   {"checkpoint", most_[1]},
                   {"transfer", most_[2]},
                   {"restore", most_[3]},
                   {"rebuild", most_[4] + rebuilt[0]}}},
                 {"stall_ms", rebuilt[1]},
                 {"response_ms", (now - asked) * 1e3}};
    for (const request::target &one : wanted_.moves)
        text["moved"].push_back({{"rank", one.rank}, {"host", one.host}});
    return text.dump();
}

} // namespace zc::migrate
