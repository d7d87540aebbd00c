/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "array.h"
#include "image.h"
#include "registry.h"
#include "transfer.h"

namespace zc::migrate {

/**
 * The state of a leaver, on its way to the disk: the way of moving that ours is compared with. As
 * in the disk variant of Cores et al. a thread writes it while the successor is started. It calls
 * no MPI, and takes no signals.
 *
 *     writing ──▶ written or failed: is_done()
 *        └──────▶ given up, by the destructor
 *
 * The file is there until this object ends.
 */
class state_file {
  public:
    /** Begins to write @data, whose arrays stay as they are until is_done(). */
    state_file(std::string path, const registry &data, const image_header &header);
    ~state_file();
    state_file(const state_file &) = delete;
    state_file &operator=(const state_file &) = delete;

    const std::string &path() const noexcept { return path_; }
    bool is_done() const noexcept { return done_; }
    /** Once it is done: what it took. Throws what went wrong. */
    effort result();

  private:
    void write(const std::vector<array> &arrays, const image_header &header);

    const std::string path_;
    effort effort_;
    std::exception_ptr problem_;
    std::atomic<bool> done_ = false, given_up_ = false;
    std::thread writer_;
};

} // namespace zc::migrate
