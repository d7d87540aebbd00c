/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_WEB_H_INCLUDED
#define ZC_AGENT_WEB_H_INCLUDED

#include <functional>
#include <map>
#include <mutex>
#include <string>

struct MHD_Daemon;

namespace zc::agent {

/**
 * Serves pages over HTTP on a unix socket of mode 0600 (zcctl, Prometheus), and,
 * if asked to, /metrics alone on loopback. Pages are text made beforehand, so a
 * reader never touches the agent. Commands are POSTs that are only noted.
 */
class web {
  public:
    /** Throws runtime_error. @command is called by the server's thread: "drain", "resume", "leave".
     */
    web(const std::string &socket_path, int loopback_port,
        std::function<void(const std::string &)> command);
    ~web();
    web(const web &) = delete;
    web &operator=(const web &) = delete;

    void publish(std::map<std::string, std::string> pages);
    /** As make_pages() gave it; nothing if there is no such page. @metrics_only: on loopback. */
    bool page(const std::string &path, bool metrics_only, std::string &out);
    bool command(const std::string &path);

  private:
    std::string path_;
    std::mutex mutex_;
    std::map<std::string, std::string> pages_;
    std::function<void(const std::string &)> command_;
    MHD_Daemon *local_ = nullptr;
    MHD_Daemon *loopback_ = nullptr;
};

} // namespace zc::agent

#endif
