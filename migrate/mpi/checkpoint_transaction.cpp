/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoint_transaction.h"

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "error.h"
#include "job.h"

namespace zc::migrate {

using nlohmann::json;

checkpoint_transaction::checkpoint_transaction(job &of)
    : job_(of), rank_(of.now_.rank), ranks_(of.now_.size), safe_point_(of.safe_points_.load()),
      begin_(seconds())
{
}

/** Rank 0: from its first checkpoint on no other job saves where this one does. */
void checkpoint_transaction::keep_others_away()
{
    if (rank_ != 0 || job_.lock_)
        return;
    const std::string &directory = job_.settings_.checkpoint_directory;
    job_.lock_ = std::make_unique<directory_lock>(directory, job_.whose());
    if (!job_.lock_->is_held())
        complain(0, directory + " cannot be locked (" + job_.lock_->problem() +
                        "): see to it that no other job saves there");
}

void checkpoint_transaction::make_image()
{
    job_.data.check_mapped();
    std::vector<array> arrays;
    for (const auto &[name, a] : job_.data.all())
        arrays.push_back(a);
    memory_.reserve(image_bound(arrays));
    image_writer writer(memory_, job_.header());
    for (const array &a : arrays)
        writer.write(a);
    image_ = writer.finish();
    zero_bytes_ = writer.zero_bytes();
}

bool checkpoint_transaction::prepare()
{
    std::string complaint;
    try {
        keep_others_away();
        make_image();
    } catch (const error &problem) {
        complaint = "rank " + std::to_string(rank_) + ": " + problem.what();
    }
    const std::string verdict = agree(job_.now_.ours, complaint);
    if (!verdict.empty()) {
        if (rank_ == 0)
            complain(-1, "no checkpoint: " + verdict);
        job_.meeting_.outcome(refusal(EIO, verdict));
        return false;
    }
    measure();
    nonce_ = std::to_string(getpid()) + "-" +
             std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    share(job_.now_.ours, 0, nonce_);
    asked_ = job_.control_.asked();
    answers_ = job_.control_.defer();
    job_.meeting_.settle();
    return true;
}

/** Collective. */
void checkpoint_transaction::measure()
{
    built_ = seconds();
    sum_ =
        total(job_.now_.ours, {static_cast<double>(image_.size()), static_cast<double>(zero_bytes_),
                               static_cast<double>(job_.data.bytes())});
    most_ = greatest(job_.now_.ours,
                     {(built_ - begin_) * 1e3, (seconds() - job_.meeting_.met()) * 1e3});
}

void checkpoint_transaction::write()
{
    std::string text;
    try {
        write_and_commit();
        if (rank_ == 0)
            text = report();
    } catch (const std::exception &problem) {
        job_.writer_problem_ = problem.what();
        text = refusal(EIO, problem.what());
        complain(rank_, std::string("no checkpoint: ") + problem.what());
    }
    if (answers_)
        job_.control_.answer_deferred(text);
}

void checkpoint_transaction::write_and_commit()
{
    const settings &chosen = job_.settings_;
    const checkpoint_directory place(chosen.checkpoint_directory, safe_point_, nonce_,
                                     job_.whose());
    std::function<void()> after_block;
    if (chosen.fault_injected(fault::slow_disk) && rank_ != 0)
        after_block = [] { std::this_thread::sleep_for(std::chrono::milliseconds(500)); };
    try {
        place.write_rank(rank_, image_, after_block);
    } catch (const error &) {
        if (rank_ != 0)
            throw;
        /* Of its own failure rank 0 hears below, with that of others. */
    }
    if (rank_ != 0)
        return;
    using company = checkpoint_directory::company;
    place.commit(ranks_, chosen.timeout_s,
                 job_.lock_->is_held() ? company::alone : company::unknown);
    done_ = seconds();
}

std::string checkpoint_transaction::report() const
{
    return json{{"ok", true},
                {"command", "checkpoint"},
                {"directory", job_.settings_.checkpoint_directory},
                {"safe_point", safe_point_},
                {"bytes", {{"data", sum_[2]}, {"image", sum_[0]}, {"zero", sum_[1]}}},
                {"phases_ms",
                 {{"negotiation", (begin_ - asked_) * 1e3},
                  {"checkpoint", most_[0]},
                  {"transfer", (done_ - built_) * 1e3}}},
                {"stall_ms", most_[1]},
                {"response_ms", (done_ - asked_) * 1e3}}
        .dump();
}

} // namespace zc::migrate
