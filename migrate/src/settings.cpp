/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>

#include "error.h"
#include "job_sockets.h"
#include "runtime_directory.h"

extern char **environ;

namespace zc::migrate {

namespace {

constexpr const char *kKnown[] = {
    "ZC_MIGRATE",         "ZC_MIGRATE_JOB",       "ZC_MIGRATE_SOCKETS",  "ZC_MIGRATE_DIR",
    "ZC_MIGRATE_RESTART", "ZC_MIGRATE_TIMEOUT",   "ZC_MIGRATE_ATTEMPTS", "ZC_MIGRATE_PROBE",
    "ZC_MIGRATE_FAULT",   "ZC_MIGRATE_SUCCESSOR", "ZC_MIGRATE_PATIENCE"};

std::string text(const char *name, const std::string &otherwise)
{
    const char *value = std::getenv(name);
    return value && *value ? value : otherwise;
}

double number(const char *name, double otherwise, double least, double most)
{
    const char *value = std::getenv(name);
    if (!value || !*value)
        return otherwise;
    char *end = nullptr;
    const double got = std::strtod(value, &end);
    if (*end || !(got >= least && got <= most))
        throw error(EINVAL, std::string("bad value of ") + name + ": " + value);
    return got;
}

void warn_of_unknown()
{
    for (char **at = environ; *at; at++) {
        const std::string_view entry(*at);
        const std::string_view name = entry.substr(0, entry.find('='));
        if (!name.starts_with("ZC_MIGRATE"))
            continue;
        bool known = false;
        for (const char *one : kKnown)
            known = known || name == one;
        if (!known)
            std::fprintf(stderr, "zcm: no such setting: %.*s\n", static_cast<int>(name.size()),
                         name.data());
    }
}

} // namespace

std::string why_not_runtime_directory()
{
    char path[PATH_MAX];
    const zcm_runtime what = zcm_runtime_directory(path, sizeof path);
    const bool is_needed =
        text("ZC_MIGRATE_SOCKETS", "").empty() || text("ZCM_PROFILE_DIR", "").empty();
    if (what == ZCM_RUNTIME_USED || what == ZCM_RUNTIME_UNSET || !is_needed)
        return "";
    return std::string("XDG_RUNTIME_DIR=") + std::getenv("XDG_RUNTIME_DIR") + ": " +
           zcm_runtime_text(what) + ", so " + path + " is used on this host";
}

settings settings::from_environment()
{
    settings s;
    const std::string on = text("ZC_MIGRATE", "0");
    if (on != "0" && on != "1" && on != "observe")
        throw error(EINVAL, "bad value of ZC_MIGRATE: " + on + " (0, 1 or observe)");
    s.on = on == "1";
    s.observe = on == "observe";
    if (!s.on && !s.observe)
        return s;
    warn_of_unknown();
    s.job = text("ZC_MIGRATE_JOB", "");
    for (char c : s.job)
        if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-", c))
            throw error(EINVAL, "bad value of ZC_MIGRATE_JOB: " + s.job);
    if (s.job == "zcmd")
        throw error(EINVAL, "bad value of ZC_MIGRATE_JOB: zcmd (it would hide the agent's socket)");
    s.socket_directory = text("ZC_MIGRATE_SOCKETS", control::default_socket_directory());
    s.checkpoint_directory = text("ZC_MIGRATE_DIR", "zcm-checkpoint");
    s.restart = text("ZC_MIGRATE_RESTART", "");
    s.timeout_s = number("ZC_MIGRATE_TIMEOUT", s.timeout_s, 0.1, 86400);
    s.patience_s = number("ZC_MIGRATE_PATIENCE", s.patience_s, 0.1, 86400);
    s.attempts = static_cast<int>(number("ZC_MIGRATE_ATTEMPTS", s.attempts, 1, 1e6));
    s.probe = text("ZC_MIGRATE_PROBE", "auto");
    s.injected = fault_of(text("ZC_MIGRATE_FAULT", ""));
    return s;
}

std::vector<std::string> inherited_environment()
{
    std::vector<std::string> found;
    for (char **at = environ; *at; at++)
        if (std::strncmp(*at, "ZC_", 3) == 0)
            found.emplace_back(*at);
    return found;
}

} // namespace zc::migrate
