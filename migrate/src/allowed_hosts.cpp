/* SPDX-License-Identifier: BSD-3-Clause */
#include "allowed_hosts.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <netdb.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

#include "ancestors.h"
#include "error.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr std::size_t kMostHosts = 1 << 20; /* of one list */
constexpr std::size_t kShown = 8;           /* names in a complaint */

void append(std::vector<std::string> &names, const std::string &name)
{
    if (names.size() >= kMostHosts)
        throw error(EINVAL, "a list of more than " + std::to_string(kMostHosts) + " hosts");
    names.push_back(name);
}

/** "1-3,07" as 1 2 3 07: numbers keep their leading zeros. */
std::vector<std::string> expand_ranges(std::string_view text)
{
    std::vector<std::string> all;
    while (true) {
        const std::string_view one = text.substr(0, text.find(','));
        const std::size_t dash = one.find('-');
        const std::string first(one.substr(0, dash));
        const std::string last(dash == std::string_view::npos ? one.substr(0)
                                                              : one.substr(dash + 1));
        const auto is_number = [](const std::string &s) {
            return !s.empty() && s.size() < 10 &&
                   s.find_first_not_of("0123456789") == std::string::npos;
        };
        if (!is_number(first) || !is_number(last) || std::stoul(first) > std::stoul(last))
            throw error(EINVAL, "not a range of numbers: " + std::string(one));
        for (unsigned long i = std::stoul(first); i <= std::stoul(last); i++) {
            std::string digits = std::to_string(i);
            if (digits.size() < first.size())
                digits.insert(0, first.size() - digits.size(), '0');
            append(all, digits);
        }
        if (one.size() == text.size())
            return all;
        text.remove_prefix(one.size() + 1);
    }
}

/** One entry, which may have several brackets. */
std::vector<std::string> expand_entry(std::string_view text)
{
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos)
        return {std::string(text)};
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos)
        throw error(EINVAL, "a bracket is not closed: " + std::string(text));
    const std::vector<std::string> after = expand_entry(text.substr(close + 1));
    std::vector<std::string> all;
    for (const std::string &number : expand_ranges(text.substr(open + 1, close - open - 1)))
        for (const std::string &rest : after)
            append(all, std::string(text.substr(0, open)) + number + rest);
    return all;
}

std::vector<std::string> words_between_commas(std::string_view text)
{
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        if (end > at)
            words.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

/** Without ":N", the number of processes there. */
std::string without_count(const std::string &word)
{
    const std::size_t colon = word.rfind(':');
    const bool counts = colon != std::string::npos && colon + 1 < word.size() &&
                        word.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                        word.find(':') == colon; /* else an address of IPv6 */
    return counts ? word.substr(0, colon) : word;
}

std::set<std::string> look_up(const std::string &host)
{
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    std::set<std::string> all;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0)
        return all;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    for (const addrinfo *at = found; at; at = at->ai_next) {
        std::array<char, 128> text{};
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text.data(), text.size(), nullptr, 0,
                        NI_NUMERICHOST) == 0)
            all.insert(text.data());
    }
    return all;
}

/** Whether one of the names is @host under another name, and how many names were not looked up for
 *  want of time. Every host is 127.0.0.1 to itself, which says nothing. */
std::pair<bool, std::size_t> share_address(const std::vector<std::string> &names,
                                           const std::string &host, const name_service &service)
{
    const auto until = std::chrono::steady_clock::now() + service.limit;
    const std::set<std::string> wanted = service.addresses_of(host);
    if (wanted.empty())
        return {false, 0};
    for (std::size_t i = 0; i < names.size(); i++) {
        if (std::chrono::steady_clock::now() > until)
            return {false, names.size() - i};
        for (const std::string &address : service.addresses_of(names[i]))
            if (wanted.contains(address) &&
                (!is_loopback(address) || address == names[i] || address == host))
                return {true, 0};
    }
    return {false, 0};
}

std::string without_domain(const std::string &name)
{
    const bool is_address = name.find_first_not_of("0123456789.") == std::string::npos ||
                            name.find(':') != std::string::npos;
    return is_address ? name : name.substr(0, name.find('.'));
}

/** How many words follow an option of Hydra's mpiexec. */
std::size_t values_of(const std::string &option)
{
    constexpr std::array kAlone = {"genvall",
                                   "genvnone",
                                   "envall",
                                   "envnone",
                                   "v",
                                   "verbose",
                                   "info",
                                   "version",
                                   "l",
                                   "prepend-rank",
                                   "disable-x",
                                   "enable-x",
                                   "usage",
                                   "pmi-port",
                                   "print-all-exitcodes",
                                   "disable-auto-cleanup",
                                   "skip-launch-node",
                                   "disable-hostname-propagation",
                                   "enable-hostname-propagation",
                                   "oversubscribe",
                                   "allow-run-as-root" /* Open MPI's */};
    constexpr std::array kPairs = {"env", "genv", "mca"};
    if (std::ranges::count(kAlone, option) > 0)
        return 0;
    return std::ranges::count(kPairs, option) > 0 ? 2 : 1;
}

std::string contents(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return "";
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string variable(const char *name)
{
    const char *value = std::getenv(name);
    return value ? value : "";
}

bool is_mpiexec(const std::string &program)
{
    const std::string name = program.substr(program.rfind('/') + 1);
    return name.starts_with("mpiexec") || name.starts_with("mpirun");
}

/** Where mpiexec is an ancestor of ours; its relative paths are from its working directory. */
allowed_hosts find_by_mpiexec()
{
    long pid = getppid();
    for (int i = 0; i < kAncestors && pid > 1; i++, pid = parent_of(pid)) {
        const std::vector<std::string> words = command_line_of(pid);
        if (words.empty() || !is_mpiexec(words[0]))
            continue;
        mpiexec_hosts found = hosts_of_mpiexec(words);
        if (!found.names.empty())
            return {false, found.names, "mpiexec's option -hosts"};
        if (found.file.empty())
            continue;
        const std::string place =
            found.file.starts_with("/") ? "" : "/proc/" + std::to_string(pid) + "/cwd/";
        return {false, hosts_of_file(contents(place + found.file)), "mpiexec's file " + found.file};
    }
    return {};
}

} // namespace

bool is_loopback(const std::string &address)
{
    return address.starts_with("127.") || address == "::1";
}

std::vector<std::string> expand_node_list(std::string_view text)
{
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        for (bool inside = false; end < text.size() && (inside || text[end] != ','); end++)
            inside = text[end] == '[' || (inside && text[end] != ']');
        if (end > at)
            for (const std::string &name : expand_entry(text.substr(at, end - at)))
                append(all, name);
        at = end + 1;
    }
    return all;
}

std::vector<std::string> hosts_of_file(std::string_view text)
{
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        line = line.substr(0, line.find('#'));
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin != std::string_view::npos) {
            line.remove_prefix(begin);
            const std::string name =
                without_count(std::string(line.substr(0, line.find_first_of(" \t\r"))));
            if (std::ranges::count(all, name) == 0)
                append(all, name);
        }
        at = end + 1;
    }
    return all;
}

mpiexec_hosts hosts_of_mpiexec(const std::vector<std::string> &words)
{
    mpiexec_hosts found;
    /* Options have one dash or two, and "-hosts=a,b" is one word. The program ends them. */
    for (std::size_t i = 1; i < words.size() && words[i].starts_with("-");) {
        std::string name = words[i++];
        name.erase(0, name.find_first_not_of('-'));
        std::string value;
        if (const std::size_t equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        } else {
            value = i < words.size() ? words[i] : "";
            i += values_of(name);
        }
        if (name == "hosts" || name == "host") {
            for (const std::string &one : words_between_commas(value))
                found.names.push_back(without_count(one));
        } else if (name == "f" || name == "hostfile" || name == "machinefile") {
            found.file = value;
        } else if (name == "launcher" || name == "bootstrap") {
            found.launcher = value;
        } else if (name == "launcher-exec" || name == "bootstrap-exec") {
            found.launcher_exec = value;
        }
    }
    return found;
}

namespace {

/** What the user or the resource manager says. */
allowed_hosts find_by_allocation(const std::string &chosen)
{
    if (!chosen.empty())
        return {false, expand_node_list(chosen), "ZC_MIGRATE_HOSTS"};
    if (const std::string list = variable("SLURM_JOB_NODELIST"); !list.empty())
        return {false, expand_node_list(list), "SLURM_JOB_NODELIST"};
    if (const std::string path = variable("PBS_NODEFILE"); !path.empty())
        if (auto names = hosts_of_file(contents(path)); !names.empty())
            return {false, std::move(names), "PBS_NODEFILE"};
    return {};
}

allowed_hosts find_by_hydra_file()
{
    if (const std::string path = variable("HYDRA_HOST_FILE"); !path.empty())
        return {false, hosts_of_file(contents(path)), "HYDRA_HOST_FILE"};
    return {};
}

} // namespace

allowed_hosts find_allowed_hosts(const std::string &chosen)
{
    if (chosen == "any")
        return {true, {}, "ZC_MIGRATE_HOSTS"};
    allowed_hosts found = find_by_allocation(chosen);
    if (found.names.empty())
        found = find_by_mpiexec();
    if (found.names.empty())
        if (allowed_hosts by_file = find_by_hydra_file(); !by_file.names.empty())
            found = std::move(by_file);
    return found;
}

allowed_hosts hosts_of_command(const std::string &chosen, const std::vector<std::string> &command)
{
    allowed_hosts found = find_by_allocation(chosen == "any" ? "" : chosen);
    if (found.names.empty()) {
        mpiexec_hosts told = hosts_of_mpiexec(command);
        if (told.names.empty() && !told.file.empty())
            told.names = hosts_of_file(contents(told.file));
        found = {false, std::move(told.names),
                 told.file.empty() ? "mpiexec's option -hosts" : "mpiexec's file " + told.file};
    }
    if (found.names.empty())
        found = find_by_hydra_file();
    if (found.names.empty())
        found = {false, {"localhost"}, "no list of hosts"};
    std::set<std::string> seen;
    std::erase_if(found.names, [&](const std::string &name) { return !seen.insert(name).second; });
    return found;
}

name_service::name_service() : addresses_of(look_up) {}

void allowed_hosts::check(const std::string &host, const name_service &service) const
{
    if (any || std::ranges::count(names, host) > 0)
        return;
    if (std::ranges::any_of(names, [&](const std::string &name) {
            return without_domain(name) == without_domain(host);
        }))
        return;
    const auto [found, unknown] = share_address(names, host, service);
    if (found)
        return;
    std::string list;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); i++)
        list += (i ? ", " : "") + names[i];
    if (names.size() > kShown)
        list += " and " + std::to_string(names.size() - kShown) + " more";
    const std::string late = unknown == 0 ? ""
                                          : "; the addresses of " + std::to_string(unknown) +
                                                " of them could not be looked up in time";
    throw error(EPERM, "host " + host + " is not one of this job's: it may use " + list + " (" +
                           source + "; ZC_MIGRATE_HOSTS says otherwise" + late + ")");
}

std::string allowed_hosts::to_json() const
{
    return json{{"any", any}, {"names", names}, {"source", source}}.dump();
}

allowed_hosts allowed_hosts::from_json(const std::string &text)
{
    return understood("the list of hosts", text, [](const json &object) {
        return allowed_hosts{object.at("any"), object.at("names").get<std::vector<std::string>>(),
                             object.at("source")};
    });
}

} // namespace zc::migrate
