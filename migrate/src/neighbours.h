/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allowed_hosts.h"
#include "successor_start.h"
#include "wire.h"

namespace zc::migrate {

/** The launcher of a rank, and what the rank's host calls itself. */
struct neighbour {
    std::string host;
    calling_card launcher;
};

/**
 * The launchers that the ranks of the job have. A host with ranks on it needs no other to start
 * more: no ssh, no proxy, no process but the successor. And one that answers shows that its host
 * does.
 */
class neighbours {
  public:
    /** Any thread. */
    void set(std::vector<neighbour> all);
    /** A launcher on @host, which a user may call by another name, or by an address; nothing where
     * none is there, or where two hosts could be meant: the process manager knows better then. */
    std::optional<calling_card> on(const std::string &host, const name_service &service = {}) const;
    /** It waits for what it is to start; null where there is none, or it does not answer. One that
     * has not is not called again: each time would take as long. @problem: why then, once. */
    std::unique_ptr<wire> call_on(const std::string &host, std::string &problem);

  private:
    mutable std::mutex mutex_;
    std::vector<neighbour> all_;
    std::set<std::string> silent_; /* keys */
};

/** By a launcher that is there, and by @others on hosts that have none, or whose launcher ends
 * without a word. */
class launch_by_neighbour final : public launch_request {
  public:
    /** @there: as call_on() has it, or null, by host. */
    launch_by_neighbour(std::map<std::string, std::unique_ptr<wire>> there, launch_request &others)
        : there_(std::move(there)), others_(others)
    {
    }
    std::string ask(const std::string &host, const std::vector<calling_card> &leavers) override;
    bool answer(const std::string &host, std::string &problem) override;
    std::string is_late(const std::string &host) const override;

  private:
    std::map<std::string, std::unique_ptr<wire>> there_;
    std::map<std::string, std::vector<calling_card>> leavers_; /* by host: what was asked there */
    launch_request &others_;
};

} // namespace zc::migrate
