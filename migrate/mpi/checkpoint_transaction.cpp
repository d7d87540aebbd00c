/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoint_transaction.h"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

#include "error.h"
#include "image_file.h"
#include "job.h"
#include "memory_room.h"

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

bool checkpoint_transaction::prepare()
{
    if (!consent() || !take())
        return false;
    measure();
    asked_ = job_.control_.asked();
    answers_ = job_.control_.defer();
    job_.meeting_.settle();
    return true;
}

/** Collective. */
bool checkpoint_transaction::consent()
{
    std::string complaint;
    try {
        keep_others_away();
        job_.require_current();
    } catch (const std::exception &problem) { /* the program's own, too */
        complaint = "rank " + std::to_string(rank_) + ": " + problem.what();
    }
    return refuse(agree(job_.now_.ours, complaint));
}

/** Collective. */
bool checkpoint_transaction::take()
{
    std::string nonce = std::to_string(getpid()) + "-" +
                        std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    share(job_.now_.ours, 0, nonce);
    const settings &chosen = job_.settings_;
    place_ = std::make_unique<checkpoint_directory>(chosen.checkpoint_directory, safe_point_, nonce,
                                                    job_.whose(), chosen.keep);
    for (const auto &[name, a] : job_.data.all())
        arrays_.push_back(a);
    streamed_ = !has_room_for_copies();
    std::string complaint;
    try {
        if (streamed_)
            stream();
        else
            copy();
    } catch (const std::exception &problem) {
        complaint = "rank " + std::to_string(rank_) + ": " + problem.what();
    }
    arrays_.clear();
    return refuse(agree(job_.now_.ours, complaint));
}

/** False, and the request is answered, unless @verdict is empty. */
bool checkpoint_transaction::refuse(const std::string &verdict)
{
    if (verdict.empty())
        return true;
    if (rank_ == 0) {
        if (place_)
            place_->discard();
        complain(-1, "no checkpoint: " + verdict);
    }
    job_.meeting_.outcome(refusal(EIO, verdict));
    return false;
}

/** Collective: is this rank to copy its state? */
bool checkpoint_transaction::has_room_for_copies()
{
    const std::array<std::uint64_t, 2> mine{std::hash<std::string>{}(host_name()),
                                            image_bound(arrays_)};
    std::vector<std::array<std::uint64_t, 2>> all(static_cast<std::size_t>(ranks_));
    PMPI_Allgather(mine.data(), mine.size(), MPI_UINT64_T, all.data(), mine.size(), MPI_UINT64_T,
                   job_.now_.ours);
    std::uint64_t needed = 0;
    for (const auto &[host, bytes] : all)
        needed += host == mine[0] ? bytes : 0;
    switch (job_.settings_.saving) {
    case settings::saving::copy:
        return true;
    case settings::saving::stream:
        return false;
    case settings::saving::automatic:
        break;
    }
    if (needed > memory_room() / 2 || job_.settings_.fault_injected(fault::no_room))
        return false;
    try {
        memory_.reserve(mine[1]);
        return true;
    } catch (const error &) {
        return false; /* ulimit -v, for example */
    }
}

void checkpoint_transaction::copy()
{
    memory_.reserve(image_bound(arrays_));
    image_writer writer(memory_, job_.header());
    for (const array &a : arrays_)
        writer.write(a, [](std::uint64_t) { make_progress(); });
    image_ = writer.finish();
    image_bytes_ = image_.size();
    zero_bytes_ = writer.zero_bytes();
}

void checkpoint_transaction::stream()
{
    const image_size size = stream_image(place_->file_of(rank_), job_.header(), arrays_, [this] {
        make_progress(); /* others may be waiting for this process */
        slow_down();
    });
    image_bytes_ = size.image_bytes;
    zero_bytes_ = size.zero_bytes;
}

/** A test wants a slow disk. */
void checkpoint_transaction::slow_down() const
{
    if (job_.settings_.fault_injected(fault::slow_disk) && rank_ != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

/** Collective. */
void checkpoint_transaction::measure()
{
    built_ = seconds();
    sum_ =
        total(job_.now_.ours, {static_cast<double>(image_bytes_), static_cast<double>(zero_bytes_),
                               static_cast<double>(job_.data.bytes()), streamed_ ? 1.0 : 0.0});
    most_ = greatest(job_.now_.ours,
                     {(built_ - begin_) * 1e3, (seconds() - job_.meeting_.met()) * 1e3});
    static bool said = false;
    if (rank_ != 0 || sum_[3] == 0 || job_.settings_.saving == settings::saving::stream || said)
        return;
    said = true;
    complain(0, std::to_string(static_cast<int>(sum_[3])) +
                    " ranks wait for the disk while they save, as their hosts have no room for "
                    "copies of their state (ZC_MIGRATE_SAVING)");
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
    if (!streamed_) {
        try {
            place_->write_rank(rank_, image_, [this] { slow_down(); });
        } catch (const error &) {
            if (rank_ != 0)
                throw;
            /* Of its own failure rank 0 hears below, with that of others. */
        }
    }
    if (rank_ != 0)
        return;
    using company = checkpoint_directory::company;
    place_->commit(ranks_, chosen.timeout_s,
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
                {"streamed", static_cast<int>(sum_[3])},
                {"phases_ms",
                 {{"negotiation", (begin_ - asked_) * 1e3},
                  {"checkpoint", most_[0]},
                  {"transfer", (done_ - built_) * 1e3}}},
                {"stall_ms", most_[1]},
                {"response_ms", (done_ - asked_) * 1e3}}
        .dump();
}

} // namespace zc::migrate
