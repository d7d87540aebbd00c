/* SPDX-License-Identifier: BSD-3-Clause */

/* zcmd: the agent of a node. See zcmd(8). */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "daemon.h"
#include "dispatched.h"
#include "soft_limits.h"

using namespace zc::agent;

namespace {

enum { kDone = 0, kFailed = 1, kUsage = 2, kBadConfig = 3, kBadKey = 4 };

/** A missing file is an error only if it was named. */
config load(const std::string &path, bool named)
{
    config c;
    if (named || access(path.c_str(), F_OK) == 0)
        c = read_config(path);
    if (const char *wanted = std::getenv("ZC_MIGRATE")) { /* as for the job itself */
        std::string mode_text = wanted;
        if (mode_text == "observe")
            set_mode(c, mode_text);
        else if (mode_text != "1" && !mode_text.empty())
            throw config_error("ZC_MIGRATE: wants 1 or observe, is " + mode_text);
    }
    return c;
}

/** The command line. */
struct arguments {
    std::string path = default_config_file();
    bool path_named = false;
    std::string key_path;
    std::string host;
    std::string listen;
    std::string advertise;
    std::string mode;
    std::vector<std::string> seeds;
    bool keygen = false;
    bool check = false;
    bool describe = false;
    bool dispatched = false;
};

/** An exit status, if there is nothing more to do. */
std::optional<int> parse(int argc, char **argv, arguments &a)
{
    CLI::App app("Agent of a node: notices overload and moves ranks of MPI jobs to better places",
                 "zcmd");
    app.set_version_flag("--version", ZC_VERSION);
    app.require_subcommand(1);
    auto *path = app.add_option("--config", a.path, "configuration file")->capture_default_str();
    CLI::App *run = app.add_subcommand("run", "be the agent of this node, in the foreground");
    run->add_option("--host", a.host, "overrides agent.host");
    run->add_option("--listen", a.listen, "overrides agent.listen");
    run->add_option("--advertise", a.advertise, "overrides agent.advertise");
    run->add_option("--mode", a.mode, "overrides agent.mode")
        ->check(CLI::IsMember({"move", "observe", "off"}));
    run->add_option("--seed", a.seeds,
                    "an agent to join by, as HOST or HOST:PORT (repeatable); adds to agent.seeds");
    CLI::App *keygen =
        app.add_subcommand("keygen", "make the key pair that all agents of this user share");
    keygen->add_option("--key", a.key_path, "file (default: agent.key_file)");
    CLI::App *check =
        app.add_subcommand("check", "check configuration and key, and say what holds");
    CLI::App *describe = app.add_subcommand("describe-config", "all settings, as Markdown");
    CLI::App *dispatched = app.add_subcommand(
        "dispatched", "be an agent of one job, as zcm-run --agents says on the standard input");
    app.footer("exit status: 0 done; 1 failed; 2 usage; 3 bad configuration; 4 bad key");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? kDone : kUsage;
    }
    a.path_named = path->count() > 0;
    a.keygen = keygen->parsed();
    a.check = check->parsed();
    a.describe = describe->parsed();
    a.dispatched = dispatched->parsed();
    return {};
}

/** The configuration file, with what the command line says instead. */
config configure(const arguments &a)
{
    config c = load(a.path, a.path_named);
    if (!a.host.empty())
        c.host = a.host;
    if (!a.listen.empty()) {
        c.listen = a.listen;
        c.advertise = a.advertise; /* what the file says goes with what it says of listen */
    } else if (!a.advertise.empty()) {
        c.advertise = a.advertise;
    }
    if (!a.mode.empty())
        set_mode(c, a.mode);
    c.logic.seeds.insert(c.logic.seeds.end(), a.seeds.begin(), a.seeds.end());
    complete(c);
    return c;
}

void print(const config &c)
{
    kernel_load load(c.cgroup, c.cpus);
    kernel_reading r = load.read(1);
    fmt::print("host {}\nlisten {}\nadvertise {}\nseeds {}\nkey {}\nstate {}\nstatus "
               "{}\nprofiles {}\n"
               "processors {:.2f}{}\nrunnable {:.0f}\n",
               c.host, c.listen, c.advertise, fmt::join(c.logic.seeds, " "), c.key_file,
               c.state_file, c.status_socket, c.profile_directory, r.cpus,
               load.cgroup().empty() ? "" : " (cgroup " + load.cgroup() + ")",
               r.runnable.value_or(0));
}

void begin_log(const std::string &level)
{
    spdlog::set_default_logger(spdlog::stderr_logger_st("zcmd"));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
    spdlog::set_level(spdlog::level::from_str(level));
}

void carry_out(const arguments &a)
{
    if (a.describe) {
        fmt::print("{}", describe_config());
        return;
    }
    if (a.dispatched) {
        begin_log("info");
        zc::raise_limits({RLIMIT_NOFILE}); /* each agent that it talks to takes two */
        run_dispatched(STDIN_FILENO, STDOUT_FILENO);
        return;
    }
    config c = configure(a);
    if (a.keygen) {
        std::string file = a.key_path.empty() ? c.key_file : a.key_path;
        zc::write_keys(file, zc::make_keys());
        fmt::print("{}: copy it to every node, by a safe way, with mode 0600\n", file);
        return;
    }
    zc::key_pair keys = zc::read_keys(c.key_file);
    if (a.check)
        return print(c);
    begin_log(c.log_level);
    zc::raise_limits({RLIMIT_NOFILE});
    node_daemon(c, keys).run();
}

} // namespace

int main(int argc, char **argv)
{
    arguments a;
    if (auto status = parse(argc, argv, a))
        return *status;
    try {
        carry_out(a);
        return kDone;
    } catch (const config_error &e) {
        fmt::print(stderr, "zcmd: {}\n", e.what());
        return kBadConfig;
    } catch (const zc::key_error &e) {
        fmt::print(stderr, "zcmd: {}\n", e.what());
        return kBadKey;
    } catch (const std::exception &e) {
        fmt::print(stderr, "zcmd: {}\n", e.what());
        return kFailed;
    }
}
