/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <set>
#include <string>

#include "lifeline.h"
#include "registry.h"
#include "settings.h"
#include "state_file.h"
#include "state_image.h"
#include "successor.h"
#include "transfer.h"

namespace zc::migrate {

/**
 * A leaver's dealings with its successor.
 *
 *     spawn, greeting ─▶ await: here ─▶ proceed ─▶ serve: data ─▶ ready ─▶ commit ─▶ go
 *
 * or abandon, at any time before go.
 *
 * Until go this process is the rank; from go on the successor is, and the worlds are linked up.
 */
class departure {
  public:
    /** Greets the successor at the other end of @line, which took @spawn_ms to start. */
    departure(const settings &settings, std::unique_ptr<lifeline> line, const greeting &greeting,
              double spawn_ms);

    /** Until the successor has answered the greeting. Throws error. */
    void await();
    /** All successors have been started: it may ask for its data. */
    void proceed() { line_->send(word::proceed); }
    /** Give the successor all of @data; returns when it has acknowledged it. @file: if not null,
     * the successor reads it from there. @image: if not null, it is sent that. Throws error. */
    void serve(const registry &data, const image_header &header, state_file *file,
               state_image *image = nullptr);
    /** The last step before go: the successor is there, listens, and its end is that of the job.
     * Throws error. */
    void commit() { line_->commit(); }
    void go() { line_->send(word::go); }
    /** Tell the successor to end itself, and wait a little until nothing is under way. */
    void abandon();
    /** What was served is still read by the network, and has to stay. */
    bool is_under_way() const noexcept { return transfer_->is_under_way(); }

    lifeline &line() noexcept { return *line_; }
    double spawn_ms() const noexcept { return spawn_ms_; }
    const effort &spent() const noexcept { return effort_; }

  private:
    void await(state_file &file);
    void answer(const std::string &question, const registry &data, const image_header &header,
                const state_file *file, state_image *image);
    void send_image(state_image &image);
    void list(const registry &data);
    /** A test wants what is sent of @source to be damaged. */
    bool damages(const array &source) const;

    const settings &settings_;
    std::unique_ptr<lifeline> line_;
    std::unique_ptr<transfer> transfer_;
    std::set<std::string> asked_;
    double spawn_ms_;
    effort effort_;
    bool has_sent_image_ = false;
};

} // namespace zc::migrate
