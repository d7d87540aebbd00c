/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "process.h"

namespace zc::migrate {

/**
 * Ends the job with @what as its error unless it goes out of scope within @timeout_s: around
 * calls of MPI that never return when a peer dies. Nobody can take this process out of one;
 * the only honest end is an error.
 */
class watchdog {
  public:
    watchdog(double timeout_s, std::string what)
        : thread_([this, timeout_s, what = std::move(what)] {
              std::unique_lock lock(mutex_);
              if (!wake_.wait_for(lock, std::chrono::duration<double>(timeout_s),
                                  [this] { return done_; }))
                  end_job(-1, what);
          })
    {
    }
    ~watchdog()
    {
        {
            std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    watchdog(const watchdog &) = delete;
    watchdog &operator=(const watchdog &) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

} // namespace zc::migrate
