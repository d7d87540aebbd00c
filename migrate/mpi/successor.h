/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "image.h"
#include "lifeline.h"
#include "transfer.h"

namespace zc::migrate {

/** What a leaver tells its successor first. */
struct greeting {
    bool moved = false; /* takes over a rank; else the start of the job: nothing to restore */
    int index = 0;      /* of this successor among the leavers */
    int rank = 0;
    std::vector<int> leavers;
    std::set<std::string> hosts; /* where ranks have been */
    std::int64_t safe_points = 0;
    std::int64_t requests = 0; /* requests, so far */
    std::string job;
    std::uint64_t identity = 0; /* of the job, for agents */
    std::int64_t moves = 0;     /* the job has made */
    double age_s = 0;           /* of the job */

    std::string to_json() const;
    static greeting from_json(const std::string &text);
};

/** Where a resumed process gets its data from. */
class inheritance {
  public:
    virtual ~inheritance() = default;
    /** Fill @target; throws error. */
    virtual void restore(const array &target) = 0;
    /** What was saved and not asked for, "" if nothing. */
    virtual std::string forgotten() const = 0;
};

/** A rank's file of a checkpoint on disk. */
class from_file final : public inheritance {
  public:
    explicit from_file(const std::string &path) : reader_(path) {}
    image_header header() const { return reader_.header(); }
    void restore(const array &target) override;
    std::string forgotten() const override;

  private:
    image_reader reader_;
    std::set<std::string> restored_;
};

/** The predecessor, still alive, at the other end of a line. */
class from_predecessor final : public inheritance {
  public:
    from_predecessor(std::unique_ptr<lifeline> line, std::string fault)
        : line_(std::move(line)), transfer_(*line_), fault_(std::move(fault))
    {
    }
    void restore(const array &target) override;
    /** The predecessor knows. */
    std::string forgotten() const override { return ""; }

    /** Tell the predecessor why this process gives up, and part from it. Does not throw. */
    void leave(const std::string &why) noexcept;

    lifeline &line() noexcept { return *line_; }
    const effort &spent() const noexcept { return effort_; }

  private:
    std::unique_ptr<lifeline> line_;
    transfer transfer_;
    effort effort_;
    std::unique_ptr<image_reader> file_; /* a move by way of the disk */
    std::string fault_;
};

} // namespace zc::migrate
