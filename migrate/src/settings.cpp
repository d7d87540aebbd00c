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
    "ZC_MIGRATE",           "ZC_MIGRATE_ATTEMPTS",     "ZC_MIGRATE_CALLBACK",
    "ZC_MIGRATE_DIR",       "ZC_MIGRATE_FAULT",        "ZC_MIGRATE_HOSTS",
    "ZC_MIGRATE_JOB",       "ZC_MIGRATE_KEEP",         "ZC_MIGRATE_LAUNCHER",
    "ZC_MIGRATE_PATIENCE",  "ZC_MIGRATE_OTHERS",       "ZC_MIGRATE_OTHER_LIBRARIES",
    "ZC_MIGRATE_PREFLIGHT", "ZC_MIGRATE_PROBE",        "ZC_MIGRATE_RECORD",
    "ZC_MIGRATE_RESTART",   "ZC_MIGRATE_SAVING",       "ZC_MIGRATE_SILENCE",
    "ZC_MIGRATE_SOCKETS",   "ZC_MIGRATE_START",        "ZC_MIGRATE_SUCCESSOR",
    "ZC_MIGRATE_TIMEOUT",   "ZC_MIGRATE_VERIFY_EVERY", "ZC_MIGRATE_VERIFY_RECORD",
    "ZC_MIGRATE_WORLD"};

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

enum settings::saving saving_of(const std::string &name)
{
    if (name == "auto")
        return settings::saving::automatic;
    if (name == "copy")
        return settings::saving::copy;
    if (name == "stream")
        return settings::saving::stream;
    throw error(EINVAL, "bad value of ZC_MIGRATE_SAVING: " + name + " (auto, copy or stream)");
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

bool do_others_run(const std::string &what)
{
    if (what != "wait" && what != "run")
        throw error(EINVAL, "bad value of ZC_MIGRATE_OTHERS: " + what + " (wait or run)");
    return what == "run";
}

settings::libraries other_libraries_of(const std::string &what)
{
    if (what == "refuse")
        return settings::libraries::refuse;
    if (what == "allow")
        return settings::libraries::allow;
    throw error(EINVAL, "bad value of ZC_MIGRATE_OTHER_LIBRARIES: " + what + " (refuse or allow)");
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

bool ranks_may_move()
{
    const std::string on = text("ZC_MIGRATE", "0");
    return on == "1" || on == "verify";
}

settings settings::from_environment()
{
    settings s;
    const std::string on = text("ZC_MIGRATE", "0");
    if (on != "0" && on != "1" && on != "observe" && on != "verify")
        throw error(EINVAL, "bad value of ZC_MIGRATE: " + on + " (0, 1, observe or verify)");
    s.verify = on == "verify";
    s.on = ranks_may_move();
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
    s.verify_every = static_cast<std::int64_t>(
        number("ZC_MIGRATE_VERIFY_EVERY", static_cast<double>(s.verify_every), 1, 1e9));
    s.record = text("ZC_MIGRATE_VERIFY_RECORD", "");
    s.keep = static_cast<int>(number("ZC_MIGRATE_KEEP", s.keep, 1, 1e6));
    s.saving = saving_of(text("ZC_MIGRATE_SAVING", "auto"));
    s.restart = text("ZC_MIGRATE_RESTART", "");
    s.timeout_s = number("ZC_MIGRATE_TIMEOUT", s.timeout_s, 0.1, 86400);
    s.silence_s = number("ZC_MIGRATE_SILENCE", s.silence_s, 0.1, 86400);
    s.start_s = number("ZC_MIGRATE_START", s.start_s, 0.1, 86400);
    s.world_s = number("ZC_MIGRATE_WORLD", s.world_s, 0.1, 86400);
    s.launcher = text("ZC_MIGRATE_LAUNCHER", "");
    s.patience_s = number("ZC_MIGRATE_PATIENCE", s.patience_s, 0.1, 86400);
    s.others_run = do_others_run(text("ZC_MIGRATE_OTHERS", "wait"));
    s.callback_s = number("ZC_MIGRATE_CALLBACK", s.callback_s, 0.1, 86400);
    s.attempts = static_cast<int>(number("ZC_MIGRATE_ATTEMPTS", s.attempts, 1, 1e6));
    s.hosts = text("ZC_MIGRATE_HOSTS", "");
    s.record_bytes = static_cast<std::size_t>(
        number("ZC_MIGRATE_RECORD", static_cast<double>(s.record_bytes), 0, 1u << 31));
    s.probe = text("ZC_MIGRATE_PROBE", "auto");
    s.checks = preflight_checks::from(text("ZC_MIGRATE_PREFLIGHT", "all"));
    s.other_libraries = other_libraries_of(text("ZC_MIGRATE_OTHER_LIBRARIES", "refuse"));
    s.injected = fault_of(text("ZC_MIGRATE_FAULT", ""));
    return s;
}

namespace {

std::vector<std::string> variables(std::initializer_list<std::string_view> prefixes)
{
    std::vector<std::string> found;
    for (char **at = environ; *at; at++)
        for (std::string_view prefix : prefixes)
            if (std::string_view(*at).starts_with(prefix)) {
                found.emplace_back(*at);
                break;
            }
    std::erase_if(found,
                  [](const std::string &one) { return one.starts_with("ZC_MIGRATE_SUCCESSOR="); });
    return found;
}

} // namespace

std::vector<std::string> inherited_environment()
{
    return variables({"ZC_", "ZCM_PROFILE_DIR="});
}

std::vector<std::string> loading_environment()
{
    return variables({"ZC_", "ZCM_PROFILE_DIR=", "LD_", "UCX_", "MPIR_CVAR_", "FI_"});
}

} // namespace zc::migrate
