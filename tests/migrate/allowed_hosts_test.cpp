/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "allowed_hosts.h"
#include "error.h"

namespace zc::migrate {
namespace {

using names = std::vector<std::string>;

std::string complaint(const allowed_hosts &hosts, const std::string &host,
                      const name_service &service = {})
{
    try {
        hosts.check(host, service);
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EPERM);
        return problem.what();
    }
    return "";
}

TEST(AllowedHosts, ExpandsSlurmsNotation)
{
    EXPECT_EQ(expand_node_list("a"), (names{"a"}));
    EXPECT_EQ(expand_node_list("a,b-c,d.example.org"), (names{"a", "b-c", "d.example.org"}));
    EXPECT_EQ(expand_node_list("n[1-3,07],gpu"), (names{"n1", "n2", "n3", "n07", "gpu"}));
    EXPECT_EQ(expand_node_list("n[08-11]"), (names{"n08", "n09", "n10", "n11"}));
    EXPECT_EQ(expand_node_list("r[1-2]n[1-2]-ib"),
              (names{"r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"}));
    EXPECT_EQ(expand_node_list(""), names{});
}

TEST(AllowedHosts, SaysWhatIsWrongWithAList)
{
    for (const char *bad : {"n[1-3", "n[3-1]", "n[]", "n[a-b]", "n[1-]", "n[1-9999999]"})
        EXPECT_THROW(expand_node_list(bad), error) << bad;
}

TEST(AllowedHosts, ReadsFilesOfHosts)
{
    EXPECT_EQ(hosts_of_file("a\nb:4\n\n# c\n  d  binding=x\na\nfe80::1\n"),
              (names{"a", "b", "d", "fe80::1"}));
    EXPECT_EQ(hosts_of_file("a"), (names{"a"}));
    EXPECT_EQ(hosts_of_file(""), names{});
}

TEST(AllowedHosts, FindsThemInTheCommandLineOfMpiexec)
{
    const auto hosts = [](const names &words) { return hosts_of_mpiexec(words).names; };
    const auto file = [](const names &words) { return hosts_of_mpiexec(words).file; };
    EXPECT_EQ(hosts({"mpiexec", "-hosts", "a,b:2", "-n", "4", "./p"}), (names{"a", "b"}));
    EXPECT_EQ(hosts({"mpiexec", "--host=a,b", "./p"}), (names{"a", "b"}));
    EXPECT_EQ(hosts({"mpiexec", "-prepend-rank", "-genv", "A", "1", "-hosts", "a", "./p"}),
              (names{"a"}));
    EXPECT_EQ(file({"mpiexec", "-disable-auto-cleanup", "-f", "list", "-n", "2", "./p"}), "list");
    EXPECT_EQ(file({"mpiexec", "-machinefile", "list", "./p"}), "list");
    /* What follows the program is the program's. */
    EXPECT_EQ(hosts({"mpiexec", "-n", "4", "./p", "-hosts", "x", "-f", "y"}), names{});
    EXPECT_EQ(file({"mpiexec", "-n", "4", "./p", "-f", "y"}), "");
    EXPECT_EQ(hosts({"mpiexec"}), names{});
    EXPECT_EQ(hosts({"mpiexec", "-hosts"}), names{});
}

TEST(AllowedHosts, RefusesOthersAndSaysWhereTheListComesFrom)
{
    const allowed_hosts hosts{false, {"n1.example.org", "127.0.0.2"}, "SLURM_JOB_NODELIST"};
    EXPECT_EQ(complaint(hosts, "n1.example.org"), "");
    EXPECT_EQ(complaint(hosts, "n1"), "");
    EXPECT_EQ(complaint(hosts, "127.0.0.2"), "");
    EXPECT_EQ(complaint(hosts, "127.0.0.3"),
              "host 127.0.0.3 is not one of this job's: it may use n1.example.org, 127.0.0.2 "
              "(SLURM_JOB_NODELIST; ZC_MIGRATE_HOSTS says otherwise)");
    EXPECT_NE(complaint(hosts, "n2"), "");
    EXPECT_EQ(complaint({true, {}, "ZC_MIGRATE_HOSTS"}, "anywhere"), "");
    EXPECT_NE(complaint({false, {}, "nothing"}, "anywhere"), "");
}

TEST(AllowedHosts, KnowsAHostUnderAnotherName)
{
    /* Only what is not everybody's own address tells. */
    const allowed_hosts hosts{false, {"localhost"}, "a test"};
    EXPECT_EQ(complaint(hosts, "localhost"), "");
    EXPECT_EQ(complaint(hosts, "127.0.0.1"), "");
}

TEST(AllowedHosts, ShortensALongList)
{
    allowed_hosts hosts{false, expand_node_list("n[1-100]"), "PBS_NODEFILE"};
    name_service none;
    none.addresses_of = [](const std::string &) { return std::set<std::string>{}; };
    EXPECT_NE(complaint(hosts, "x", none).find("n8 and 92 more (PBS_NODEFILE"), std::string::npos);
}

TEST(AllowedHosts, LooksUpNoNameForAHostThatHasNoAddress)
{
    const allowed_hosts hosts{false, expand_node_list("n[1-1000]"), "PBS_NODEFILE"};
    std::vector<std::string> asked;
    name_service counted;
    counted.addresses_of = [&](const std::string &name) {
        asked.push_back(name);
        return std::set<std::string>{};
    };
    EXPECT_NE(complaint(hosts, "x", counted), "");
    EXPECT_EQ(asked, names{"x"});
    asked.clear();
    EXPECT_EQ(complaint(hosts, "n1000.example.org", counted), "") << "by its name alone";
    EXPECT_EQ(asked, names{});
}

TEST(AllowedHosts, LooksUpEachNameOnce)
{
    const allowed_hosts hosts{false, expand_node_list("n[1-3]"), "PBS_NODEFILE"};
    std::vector<std::string> asked;
    name_service counted;
    counted.addresses_of = [&](const std::string &name) {
        asked.push_back(name);
        return std::set<std::string>{name == "n3" || name == "alias" ? "10.0.0.3" : "10.0.0.1"};
    };
    EXPECT_EQ(complaint(hosts, "alias", counted), "");
    EXPECT_EQ(asked, (names{"alias", "n1", "n2", "n3"}));
}

TEST(AllowedHosts, EndsLookingUpAndSaysSo)
{
    const allowed_hosts hosts{false, expand_node_list("n[1-1000]"), "PBS_NODEFILE"};
    int asked = 0;
    name_service slow;
    slow.limit = std::chrono::milliseconds(0);
    slow.addresses_of = [&](const std::string &name) {
        asked++;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return std::set<std::string>{name == "x" ? "10.0.0.9" : "10.0.0.1"};
    };
    EXPECT_NE(complaint(hosts, "x", slow)
                  .find("; the addresses of 1000 of them could not be looked "
                        "up in time)"),
              std::string::npos);
    EXPECT_EQ(asked, 1);
}

TEST(AllowedHosts, TravelsWithRankZero)
{
    const allowed_hosts hosts{false, {"a", "b"}, "PBS_NODEFILE"};
    const allowed_hosts there = allowed_hosts::from_json(hosts.to_json());
    EXPECT_EQ(there.any, hosts.any);
    EXPECT_EQ(there.names, hosts.names);
    EXPECT_EQ(there.source, hosts.source);
    EXPECT_THROW(allowed_hosts::from_json("{}"), error);
}

TEST(AllowedHosts, OfAJobThatIsToBeStarted)
{
    const char *const variables[] = {"SLURM_JOB_NODELIST", "PBS_NODEFILE", "HYDRA_HOST_FILE"};
    for (const char *name : variables)
        unsetenv(name);
    const auto path =
        std::filesystem::temp_directory_path() / ("zcm-hosts-" + std::to_string(getpid()));
    std::ofstream(path) << "p1:4\np1\np2\n";
    const names alone{"mpiexec", "-n", "2", "p", "-hosts", "x"};
    const names listed{"mpiexec", "-hosts", "a:2,b,a", "-n", "4", "p"};
    const names filed{"mpiexec", "-f", path, "p"};
    EXPECT_EQ(hosts_of_command("", alone).names, names{"localhost"});
    EXPECT_EQ(hosts_of_command("", listed).names, (names{"a", "b"}));
    EXPECT_EQ(hosts_of_command("any", listed).names, (names{"a", "b"}));
    EXPECT_EQ(hosts_of_command("", filed).names, (names{"p1", "p2"}));
    setenv("HYDRA_HOST_FILE", path.c_str(), 1);
    EXPECT_EQ(hosts_of_command("", alone).names, (names{"p1", "p2"}));
    EXPECT_EQ(hosts_of_command("", listed).names, (names{"a", "b"}));
    setenv("SLURM_JOB_NODELIST", "s[1-2]", 1);
    EXPECT_EQ(hosts_of_command("", listed).names, (names{"s1", "s2"}));
    EXPECT_EQ(hosts_of_command("u[1-2]", listed).names, (names{"u1", "u2"}));
    for (const char *name : variables)
        unsetenv(name);
    std::filesystem::remove(path);
}

TEST(AllowedHosts, AreTheFirstThatIsSaid)
{
    for (const char *name : {"SLURM_JOB_NODELIST", "PBS_NODEFILE", "HYDRA_HOST_FILE"})
        unsetenv(name);
    const auto path =
        std::filesystem::temp_directory_path() / ("zcm-hosts-" + std::to_string(getpid()));
    std::ofstream(path) << "p1\np1\np2\n";
    setenv("HYDRA_HOST_FILE", path.c_str(), 1);
    EXPECT_EQ(find_allowed_hosts("").names, (names{"p1", "p2"}));
    EXPECT_EQ(find_allowed_hosts("").source, "HYDRA_HOST_FILE");
    setenv("PBS_NODEFILE", path.c_str(), 1);
    EXPECT_EQ(find_allowed_hosts("").source, "PBS_NODEFILE");
    setenv("SLURM_JOB_NODELIST", "s[1-2]", 1);
    EXPECT_EQ(find_allowed_hosts("").names, (names{"s1", "s2"}));
    EXPECT_EQ(find_allowed_hosts("u[1-2],v").names, (names{"u1", "u2", "v"}));
    EXPECT_EQ(find_allowed_hosts("u").source, "ZC_MIGRATE_HOSTS");
    EXPECT_TRUE(find_allowed_hosts("any").any);
    for (const char *name : {"SLURM_JOB_NODELIST", "PBS_NODEFILE", "HYDRA_HOST_FILE"})
        unsetenv(name);
    std::filesystem::remove(path);
}

} // namespace
} // namespace zc::migrate
