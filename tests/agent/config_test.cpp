/* SPDX-License-Identifier: BSD-3-Clause */
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <unistd.h>

#include "config.h"
#include "rank_groups.h"

namespace zc::agent {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text)
{
    try {
        parse_config(text, "zcmd.toml");
    } catch (const config_error &e) {
        return e.what();
    }
    return "";
}

TEST(AgentConfigTest, TheWaysOfPapersCanBeChosen)
{
    const config c = parse_config("[policy]\ndecision = \"threshold\"\npattern_group = \"all\"\n"
                                  "[decision]\nthreshold = 0.5\n",
                                  "x");
    EXPECT_EQ(c.logic.decision, "threshold");
    EXPECT_DOUBLE_EQ(c.logic.threshold, 0.5);
    EXPECT_EQ(c.logic.patterns.group, pattern_settings::membership::all);
    EXPECT_EQ(config().logic.decision, "balance");
    EXPECT_EQ(config().logic.patterns.group, pattern_settings::membership::near);
    for (const char *wrong : {"[policy]\ndecision = \"often\"", "[decision]\nthreshold = 0",
                              "[policy]\npattern_group = true"})
        EXPECT_THROW(parse_config(wrong, "x"), config_error) << wrong;
}

TEST(AgentConfigTest, EmptyFileIsTheDefaults)
{
    config c = parse_config("", "zcmd.toml");
    EXPECT_EQ(c.logic.policy, "network");
    EXPECT_EQ(c.logic.act, mode::observe); /* nothing moves unless it was asked for */
    EXPECT_EQ(c.transparent, "yes");
    EXPECT_EQ(c.holder_port, 0);
}

TEST(AgentConfigTest, ReadsWhatBecomesOfRanksBelowZcHold)
{
    for (const char *text : {"yes", "observe", "no"}) {
        config c = parse_config("[policy]\ntransparent = \"" + std::string(text) +
                                    "\"\n[jobs]\nholder_port = 7474\n",
                                "zcmd.toml");
        EXPECT_EQ(c.transparent, text);
        EXPECT_EQ(c.holder_port, 7474);
    }
    EXPECT_THAT(error_of("[policy]\ntransparent = true\n"),
                HasSubstr("policy.transparent: wants one of yes, observe, no"));
}

TEST(AgentConfigTest, ReadsEveryKind)
{
    config c = parse_config("[agent]\nmode = \"move\"\nseeds = [\"tcp://a:1\", \"tcp://b:2\"]\n"
                            "[membership]\nperiod = 0.5\nmax_members = 32\n"
                            "[policy]\nstealing = \"random\"\n[decision]\nhysteresis = 0.3\n",
                            "zcmd.toml");
    EXPECT_EQ(c.logic.act, mode::move);
    EXPECT_EQ(c.logic.seeds, (std::vector<std::string>{"tcp://a:1", "tcp://b:2"}));
    EXPECT_EQ(c.logic.period, kSecond / 2);
    EXPECT_EQ(c.logic.max_members, 32u);
    EXPECT_EQ(c.logic.policy, "random");
    EXPECT_DOUBLE_EQ(c.logic.hysteresis, 0.3);
}

TEST(AgentConfigTest, NamesLineKeyAndNearestMatch)
{
    std::string e = error_of("[decision]\n\nhysterisis = 0.3\n");
    EXPECT_THAT(e, HasSubstr("zcmd.toml:3: decision.hysterisis: no such key"));
    EXPECT_THAT(e, HasSubstr("did you mean \"hysteresis\"?"));
}

TEST(AgentConfigTest, NamesTheTableNearest)
{
    EXPECT_THAT(error_of("[polcy]\nhops = 3\n"),
                HasSubstr("zcmd.toml:1: polcy: no such table; did you mean \"policy\"?"));
}

TEST(AgentConfigTest, SaysWhereAKeyBelongs)
{
    EXPECT_THAT(error_of("[agent]\nhops = 3\n"), HasSubstr("it belongs below [policy]"));
    EXPECT_THAT(error_of("hops = 3\n"), HasSubstr("it belongs below [policy]"));
}

TEST(AgentConfigTest, NothingNearIsNotGuessed)
{
    EXPECT_THAT(error_of("[agent]\nqqqqqqqqqq = 1\n"), testing::Not(HasSubstr("did you mean")));
}

TEST(AgentConfigTest, RefusesWrongTypesAndRanges)
{
    EXPECT_THAT(error_of("[policy]\nhops = \"8\"\n"),
                HasSubstr("zcmd.toml:2: policy.hops: wants a number from 1 to 32"));
    EXPECT_THAT(error_of("[policy]\nhops = 3.5\n"), HasSubstr("wants a whole number"));
    EXPECT_THAT(error_of("[policy]\nhops = 0\n"), HasSubstr("from 1 to 32"));
    EXPECT_THAT(error_of("[policy]\nstealing = \"nearest\"\n"),
                HasSubstr("wants one of random, application, network"));
    EXPECT_THAT(error_of("[agent]\nseeds = \"tcp://a:1\"\n"), HasSubstr("wants a list"));
    EXPECT_THAT(error_of("[agent]\nmode = \"on\"\n"), HasSubstr("move, observe, off"));
    EXPECT_THAT(error_of("[membership]\nperiod = nan\n"), HasSubstr("wants a number of seconds"));
    EXPECT_THAT(error_of("agent = 3\n"), HasSubstr("is a table"));
}

TEST(AgentConfigTest, ReadsHowRanksAreGrouped)
{
    for (const std::string &name : grouping_names()) {
        const config c = parse_config("[policy]\ngrouping = \"" + name + "\"\n", "zcmd.toml");
        EXPECT_EQ(c.logic.grouping, name);
    }
    EXPECT_THAT(error_of("[policy]\ngrouping = \"teiresias\"\n"),
                HasSubstr("policy.grouping: wants one of zc, matrix, teiresias-basic, "
                          "teiresias-specific, teiresias-levenshtein, single"));
    const config c = parse_config("[policy]\npattern_literals = 4\npattern_window = 6\n"
                                  "pattern_support = 3\npattern_period = 100\n"
                                  "pattern_adaptive = true\npattern_kmp = false\n",
                                  "zcmd.toml");
    EXPECT_EQ(c.logic.patterns.literals, 4u);
    EXPECT_EQ(c.logic.patterns.window, 6u);
    EXPECT_EQ(c.logic.patterns.support, 3u);
    EXPECT_EQ(c.logic.patterns.period, 100u);
    EXPECT_TRUE(c.logic.patterns.adaptive);
    EXPECT_EQ(c.logic.patterns.kmp, ZCP_GROUPS_KMP_OFF);
    EXPECT_EQ(c.logic.patterns.match, ZCP_GROUPS_MATCH_WHOLE);
    EXPECT_EQ(c.logic.patterns.recent, ZCP_GROUPS_RECENT_OVER);
}

TEST(AgentConfigTest, ReadsWhatThePaperOfThePatternsMeans)
{
    const auto patterns = [](const std::string &line) {
        return parse_config("[policy]\n" + line + "\n", "zcmd.toml").logic.patterns;
    };
    EXPECT_EQ(patterns("").kmp, ZCP_GROUPS_KMP_ZC);
    EXPECT_EQ(patterns("pattern_kmp = \"zc\"").kmp, ZCP_GROUPS_KMP_ZC);
    EXPECT_EQ(patterns("pattern_kmp = \"strict\"").kmp, ZCP_GROUPS_KMP_STRICT);
    EXPECT_EQ(patterns("pattern_kmp = \"off\"").kmp, ZCP_GROUPS_KMP_OFF);
    EXPECT_EQ(patterns("pattern_kmp = true").kmp, ZCP_GROUPS_KMP_ZC); /* as it was written once */
    EXPECT_EQ(patterns("pattern_match = \"prefix\"").match, ZCP_GROUPS_MATCH_PREFIX);
    EXPECT_EQ(patterns("pattern_recent = \"current\"").recent, ZCP_GROUPS_RECENT_CURRENT);
}

TEST(AgentConfigTest, RefusesPatternsThatCannotBe)
{
    EXPECT_THAT(error_of("[policy]\npattern_literals = 1\n"),
                HasSubstr("zcmd.toml:2: policy.pattern_literals: wants a number from 2 to 32"));
    EXPECT_THAT(error_of("[policy]\npattern_window = 33\n"), HasSubstr("from 2 to 32"));
    EXPECT_THAT(error_of("[policy]\npattern_literals = 5\n"),
                HasSubstr("policy.pattern_window: must not be below policy.pattern_literals"));
    EXPECT_THAT(error_of("[policy]\npattern_support = 1\n"), HasSubstr("from 2 to 1000"));
    EXPECT_THAT(error_of("[policy]\npattern_period = 8193\n"), HasSubstr("from 16 to 8192"));
    EXPECT_THAT(error_of("[policy]\npattern_adaptive = 1\n"), HasSubstr("wants true or false"));
    EXPECT_THAT(error_of("[policy]\npattern_kmp = \"yes\"\n"),
                HasSubstr("wants one of off, strict, zc"));
    EXPECT_THAT(error_of("[policy]\npattern_kmp = 1\n"), HasSubstr("wants one of off, strict, zc"));
    EXPECT_THAT(error_of("[policy]\npattern_match = true\n"),
                HasSubstr("wants one of whole, prefix"));
    EXPECT_THAT(error_of("[policy]\npattern_recent = \"last\"\n"),
                HasSubstr("wants one of over, current"));
}

TEST(AgentConfigTest, RefusesLeasesThatEndTooSoon)
{
    EXPECT_THAT(error_of("[protocol]\nlease = 10\ncommit_window = 8\n"),
                HasSubstr("protocol.lease"));
}

TEST(AgentConfigTest, SaysWhereItIsNotToml)
{
    EXPECT_THAT(error_of("[agent]\nhost = \n"), HasSubstr("zcmd.toml:2: not TOML"));
}

TEST(AgentConfigTest, AMissingFileIsNamed)
{
    try {
        read_config("/nonexistent/zcmd.toml");
        FAIL();
    } catch (const config_error &e) {
        EXPECT_THAT(e.what(), HasSubstr("/nonexistent/zcmd.toml: No such file"));
    }
}

TEST(AgentConfigTest, EachUserHasAPortOfItsOwn)
{
    EXPECT_EQ(default_port(0), 20000);
    EXPECT_EQ(default_port(1000), 21000);
    EXPECT_EQ(default_port(12999), 20999);
    EXPECT_EQ(default_port(4294967294u) / 1000, 31);
    for (unsigned uid = 1000; uid < 13000; uid += 97) {
        EXPECT_GE(default_port(uid), 20000);
        EXPECT_LT(default_port(uid), 32000);
        EXPECT_NE(default_port(uid), default_port(uid + 1));
    }
    config c = parse_config("", "zcmd.toml");
    c.host = "a";
    complete(c);
    const std::string port = std::to_string(default_port(geteuid()));
    EXPECT_EQ(c.listen, "tcp://*:" + port);
    EXPECT_EQ(c.advertise, "tcp://a:" + port);
}

TEST(AgentConfigTest, SeedsWithoutAPortAreWhereWeListen)
{
    const std::string seeds =
        "seeds = [\"b\", \"tcp://c\", \"d:7\", \"tcp://[fe80::1]\", \"tcp://[fe80::1]:8\"]\n";
    auto seeds_of = [&](const std::string &rest) {
        config c = parse_config("[agent]\n" + seeds + rest, "zcmd.toml");
        complete(c);
        return c.logic.seeds;
    };
    auto wanted = [](const std::string &port) {
        return std::vector<std::string>{"tcp://b:" + port, "tcp://c:" + port, "tcp://d:7",
                                        "tcp://[fe80::1]:" + port, "tcp://[fe80::1]:8"};
    };
    EXPECT_EQ(seeds_of(""), wanted(std::to_string(default_port(geteuid()))));
    EXPECT_EQ(seeds_of("listen = \"tcp://*:9000\"\n"), wanted("9000"));
    EXPECT_EQ(seeds_of("listen = \"tcp://*:*\"\n"),
              wanted(std::to_string(default_port(geteuid()))));
    config c = parse_config("[agent]\nlisten = \"tcp://*:9000\"\nadvertise = \"a\"\n", "zcmd.toml");
    complete(c);
    EXPECT_EQ(c.advertise, "tcp://a:9000");
}

TEST(AgentConfigTest, LooksForJobsInBothUsualPlaces)
{
    const std::string uid = std::to_string(geteuid());
    const char *before = std::getenv("XDG_RUNTIME_DIR");
    const std::string kept = before ? before : "";
    auto completed = [] {
        config c = parse_config("", "zcmd.toml");
        complete(c);
        return c;
    };
    unsetenv("XDG_RUNTIME_DIR");
    config c = completed();
    EXPECT_EQ(c.socket_directory, "/tmp/zcm-" + uid);
    EXPECT_EQ(c.other_socket_directories, std::vector<std::string>{"/run/user/" + uid + "/zcm"});
    EXPECT_EQ(c.other_profile_directories,
              std::vector<std::string>{"/run/user/" + uid + "/zcm/ranks"});
    EXPECT_EQ(c.why_not_runtime, "");
    setenv("XDG_RUNTIME_DIR", "/nonexistent/run", 1);
    c = completed();
    EXPECT_EQ(c.profile_directory, "/tmp/zcm-" + uid + "/ranks");
    EXPECT_THAT(c.why_not_runtime, HasSubstr("/nonexistent/run: it does not exist"));
    char own[] = "/tmp/zca-run-XXXXXX";
    setenv("XDG_RUNTIME_DIR", mkdtemp(own), 1);
    c = completed();
    EXPECT_EQ(c.status_socket, std::string(own) + "/zcm/zcmd.sock");
    EXPECT_TRUE(c.other_socket_directories.empty());
    rmdir(own);
    if (before)
        setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
    else
        unsetenv("XDG_RUNTIME_DIR");
}

TEST(AgentConfigTest, DescribesEverything)
{
    std::string text = describe_config();
    for (const char *key : {"**hysteresis**", "**seeds**", "**prometheus_port**", "## [protocol]"})
        EXPECT_THAT(text, HasSubstr(key));
}

} // namespace
} // namespace zc::agent
