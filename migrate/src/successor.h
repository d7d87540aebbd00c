/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allowed_hosts.h"
#include "image.h"
#include "lifeline.h"
#include "settings.h"
#include "transfer.h"

namespace zc::migrate {

/** What a leaver tells its successor first. */
struct greeting {
    bool moved = false;      /* takes over a rank; else the start of the job: nothing to restore */
    bool others_run = false; /* it is the rank before it has its data, and the others run */
    int index = 0;           /* of this successor among the leavers */
    int rank = 0;
    int ranks = 1; /* of the job */
    std::vector<int> leavers;
    std::set<std::string> hosts;  /* where ranks have been */
    allowed_hosts allowed;        /* where they may go */
    std::string program, library; /* builds, as preflight has them */
    std::uint64_t features = 0;   /* of processors that the program may need */
    std::uint64_t bytes = 0;      /* that will come to the successor's host */
    std::int64_t safe_points = 0;
    std::int64_t requests = 0; /* requests, so far */
    std::string job;
    std::uint64_t identity = 0;      /* of the job, for agents and checkpoints */
    std::uint64_t line = 0;          /* of jobs, of which this one goes on with the state */
    std::string resume;              /* the start of a job that was saved: from this checkpoint */
    std::int64_t moves = 0;          /* the job has made */
    std::int64_t late_functions = 0; /* requests given up as functions did not return */
    double age_s = 0;                /* of the job */
    std::string layer;        /* what the rank has of MPI (JSON); "" at the start of the job */
    std::uint64_t record = 0; /* bytes of the record of its initialisation, which is asked for */

    std::string to_json() const;
    static greeting from_json(const std::string &text);
};

/** Where a resumed process gets its data from. */
class inheritance {
  public:
    virtual ~inheritance() = default;
    /** Fill @target; throws error. */
    virtual void restore(const array &target) = 0;
    /** Elements saved as @name, if it was; throws error. */
    virtual std::optional<std::uint64_t> count(const std::string &name) = 0;
    /** All that was saved, in order; throws error. */
    virtual const std::vector<std::string> &names() = 0;
    /** What was saved and not asked for, "" if nothing. */
    virtual std::string forgotten() const = 0;
};

/** Throws error(EBADMSG), naming @path, unless what @image has is the state of @expected. */
void check_header(const image_reader &image, const image_header &expected, const std::string &path);

/** A rank's file of a checkpoint on disk. */
class from_file final : public inheritance {
  public:
    explicit from_file(const std::string &path) : path_(path), reader_(path) {}
    /** Throws error(EBADMSG) unless the file's is @expected. */
    void check(const image_header &expected) const { check_header(reader_, expected, path_); }
    void restore(const array &target) override;
    std::optional<std::uint64_t> count(const std::string &name) override
    {
        return reader_.count(name);
    }
    const std::vector<std::string> &names() override;
    std::string forgotten() const override;

  private:
    std::string path_;
    std::vector<std::string> names_;
    image_reader reader_;
    std::set<std::string> restored_;
};

/** The predecessor, still alive, at the other end of a line. */
class from_predecessor final : public inheritance {
  public:
    /** @expected: of the state that is handed over, if it comes as a whole. */
    from_predecessor(std::unique_ptr<lifeline> line, const image_header &expected,
                     const settings &settings)
        : settings_(settings), line_(std::move(line)), transfer_(*line_), expected_(expected)
    {
    }
    void restore(const array &target) override;
    std::optional<std::uint64_t> count(const std::string &name) override;
    const std::vector<std::string> &names() override;
    /** The predecessor knows. */
    std::string forgotten() const override { return ""; }

    /** Tell the predecessor why this process gives up, and part from it. Does not throw. */
    void leave(const std::string &why) noexcept;

    lifeline &line() noexcept { return *line_; }
    const effort &spent() const noexcept { return effort_; }

  private:
    void list();
    void open_file(const std::string &path);
    void open_image(std::uint64_t bytes, std::uint32_t checksum);

    const settings &settings_;
    std::unique_ptr<lifeline> line_;
    transfer transfer_;
    effort effort_;
    image_header expected_;

    bool listed_ = false; /* what the predecessor has: */
    std::vector<std::string> names_;
    std::vector<std::uint64_t> counts_;
    std::unique_ptr<image_reader> file_; /* a move by way of the disk, or of one image */
};

} // namespace zc::migrate
