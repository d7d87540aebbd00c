/* SPDX-License-Identifier: BSD-3-Clause */
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <set>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "error.h"
#include "launcher.h"
#include "process_manager.h"
#include "successor_start.h"
#include "wire.h"

namespace zc::migrate {
namespace {

using nlohmann::json;
using steps = std::vector<std::string>;

constexpr int kExited = 0, kExitedWith3 = 3 << 8;

/** Writes down what a launcher wants. */
class Launcher : public testing::Test, private launcher_actions {
  protected:
    explicit Launcher(std::size_t children = 2) : it(children, *this) {}
    steps take() { return std::exchange(done_, {}); }
    void make_rank(std::size_t child)
    {
        it.child_says(child, {{"port", "p"}});
        it.leaver_says(child, {{"go", true}});
        take();
    }

    launcher it;

  private:
    bool change_leaver(std::size_t child, const std::string &card) override
    {
        done_.push_back("leaver " + std::to_string(child) + " is " + card);
        return card != "nobody's";
    }
    void tell_leaver(std::size_t child, const json &what) override
    {
        done_.push_back("leaver " + std::to_string(child) + " " + what.dump());
    }
    void tell_child(std::size_t child, const json &what) override
    {
        done_.push_back("child " + std::to_string(child) + " " + what.dump());
    }
    void kill_child(std::size_t child) override
    {
        done_.push_back("kill " + std::to_string(child));
    }
    void guard_ranks(std::size_t ranks) override
    {
        done_.push_back("ranks " + std::to_string(ranks));
    }
    void abort_job(int code) override { done_.push_back("abort " + std::to_string(code)); }
    void spawn(const std::string &host, const std::string &card) override
    {
        done_.push_back("spawn " + host + " " + card);
    }

    steps done_;
};

TEST_F(Launcher, TellsTheLeaverWhereItsSuccessorIs)
{
    it.child_says(1, {{"port", "there"}});
    EXPECT_EQ(take(), steps{R"(leaver 1 {"port":"there"})"});
    it.child_says(1, {{"port", "again"}});
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, AbortsTheJobForARankOnly)
{
    it.child_says(0, {{"abort", 7}});
    EXPECT_EQ(take(), steps{});
    make_rank(0);
    it.child_says(0, {{"abort", 7}});
    EXPECT_EQ(take(), steps{"abort 7"});
}

TEST_F(Launcher, TellsTheLeaverHowItsSuccessorHasEndedAndGoesOn)
{
    it.child_ended(0, SIGKILL);
    EXPECT_EQ(take(),
              steps{R"x(leaver 0 {"ended":"was killed by signal 9 (Killed)","stood_by":false})x"});
    EXPECT_FALSE(it.is_over());
    it.child_says(1, {{"port", "p"}});
    take();
    it.child_ended(1, kExitedWith3);
    EXPECT_EQ(take(),
              steps{R"(leaver 1 {"ended":"has ended with exit status 3","stood_by":true})"});
    it.leaver_gone(0);
    EXPECT_FALSE(it.is_over()); /* another may be the leaver of 1 yet */
    it.leaver_gone(1);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.signal(), 0); /* no rank was lost */
}

TEST_F(Launcher, KillsASuccessorWhoseLeaverIsGoneOrDoesNotWantIt)
{
    it.leaver_gone(0);
    EXPECT_EQ(take(), steps{"kill 0"});
    it.child_says(1, {{"port", "p"}});
    take();
    it.leaver_says(1, {{"end", true}});
    EXPECT_EQ(take(), steps{"kill 1"});
    it.child_ended(1, SIGKILL);
    take();
    it.leaver_gone(1);
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, NotesThatASuccessorIsTheRank)
{
    it.child_says(0, {{"port", "p"}});
    take();
    it.leaver_says(0, {{"go", true}});
    EXPECT_EQ(take(), (steps{"ranks 1", R"(leaver 0 {"noted":true})"}));
    it.leaver_says(0, {{"end", true}});
    EXPECT_EQ(it.name_of(0), "a rank");
    it.child_says(0, {{"rank", 3}});
    EXPECT_EQ(it.name_of(0), "rank 3");
    it.leaver_gone(0); /* has left */
    it.leaver_says(0, {{"end", true}});
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, KillsOneThatIsChosenAndWillNotHearOfIt)
{
    make_rank(0);
    it.leaver_gone(0);
    EXPECT_EQ(take(), steps{"kill 0"});
    it.child_ended(0, SIGKILL);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.signal(), SIGKILL); /* it may have been the rank: the job ends */
}

TEST_F(Launcher, DoesNotTakeAWordThatComesTooEarly)
{
    it.child_says(0, {{"port", "p"}});
    it.child_says(0, {{"rank", 3}});
    take();
    it.leaver_gone(0);
    EXPECT_EQ(take(), steps{"kill 0"});
    it.child_ended(0, SIGKILL);
    EXPECT_EQ(it.signal(), 0);
}

TEST_F(Launcher, TakesItBackIfTheMoveIsRefusedAtTheLastMoment)
{
    make_rank(0);
    it.leaver_says(0, {{"back", true}});
    EXPECT_EQ(take(), steps{"ranks 0"});
    it.child_ended(0, SIGKILL);
    take();
    EXPECT_FALSE(it.is_over());
    EXPECT_EQ(it.signal(), 0);
    it.leaver_says(1, {{"back", true}}); /* was none */
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, DoesNotNoteOneThatEnds)
{
    it.child_says(0, {{"port", "p"}});
    take();
    it.child_ends(0);
    it.leaver_says(0, {{"go", true}});
    EXPECT_EQ(take(), steps{});
    it.child_ended(0, SIGKILL);
    EXPECT_EQ(it.signal(), 0);
    EXPECT_EQ(
        take(),
        (steps{"leaver 0 {\"ended\":\"was killed by signal 9 (Killed)\",\"stood_by\":true}"}));
}

TEST_F(Launcher, TakesItBackOfOneThatEnds)
{
    make_rank(0);
    it.child_ends(0);
    it.leaver_says(0, {{"back", true}});
    it.child_ended(0, SIGKILL);
    EXPECT_EQ(it.signal(), 0);
}

TEST_F(Launcher, DoesNotNoteOneThatHasEnded)
{
    it.child_says(0, {{"port", "p"}});
    it.child_ended(0, SIGSEGV);
    take();
    it.leaver_says(0, {{"go", true}});
    EXPECT_EQ(
        take(),
        steps{
            R"x(leaver 0 {"ended":"was killed by signal 11 (Segmentation fault)","stood_by":true})x"});
    EXPECT_EQ(it.signal(), 0);
}

TEST_F(Launcher, EndsWithTheSignalOfARank)
{
    make_rank(0);
    it.child_ended(0, SIGSEGV);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.signal(), SIGSEGV);
}

TEST_F(Launcher, EndsByASignalIfARankExitsWithAnError)
{
    make_rank(1);
    it.child_ended(1, kExitedWith3);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.signal(), SIGKILL);
}

TEST_F(Launcher, IsOverWhenAllHaveEndedWell)
{
    make_rank(0);
    make_rank(1);
    it.child_ended(0, kExited);
    EXPECT_EQ(take(), steps{"ranks 1"});
    EXPECT_FALSE(it.is_over());
    it.child_ended(1, kExited);
    EXPECT_EQ(take(), steps{"ranks 0"});
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.signal(), 0);
}

TEST_F(Launcher, TellsANewLeaverWhatHasBecomeOfItsSuccessor)
{
    it.leaver_says(0, {{"leaver", "a"}}); /* before it is ready */
    EXPECT_EQ(take(), steps{"leaver 0 is a"});
    it.child_says(0, {{"port", "p"}, {"facts", "f"}});
    take();
    it.leaver_says(0, {{"leaver", "b"}});
    EXPECT_EQ(take(), (steps{"leaver 0 is b", R"(leaver 0 {"facts":"f","port":"p"})"}));
    it.leaver_says(0, {{"accept", true}});
    EXPECT_EQ(take(), steps{R"(child 0 {"accept":true})"});
    it.child_ended(1, kExited);
    take();
    it.leaver_says(1, {{"leaver", "c"}});
    EXPECT_EQ(take(),
              (steps{"leaver 1 is c",
                     R"(leaver 1 {"ended":"has ended with exit status 0","stood_by":false})"}));
    it.leaver_says(1, {{"accept", true}}); /* it has ended */
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, KillsASuccessorWhoseNewLeaverCannotBeCalled)
{
    it.leaver_says(0, {{"leaver", "nobody's"}});
    EXPECT_EQ(take(), (steps{"leaver 0 is nobody's", "kill 0"}));
    make_rank(1);
    it.leaver_says(1, {{"leaver", "a"}}); /* a rank has none */
    EXPECT_EQ(take(), steps{});
}

TEST_F(Launcher, AsksTheProcessManagerOneThingAfterTheOther)
{
    it.child_says(0, {{"spawn", "a"}, {"card", "x"}});
    EXPECT_EQ(take(), steps{"spawn a x"});
    it.child_says(1, {{"spawn", "b"}, {"card", "y"}});
    EXPECT_EQ(take(), steps{});
    it.spawned("");
    EXPECT_EQ(take(), (steps{R"(child 0 {"problem":"","spawned":"a"})", "spawn b y"}));
    it.child_ended(1, SIGKILL);
    take();
    it.spawned("no");
    EXPECT_EQ(take(), steps{}); /* it would have told child 1 */
    it.spawned("nothing was asked");
}

/* ---- wires ---- */

std::array<std::unique_ptr<wire>, 2> two_ends()
{
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    return {std::make_unique<wire>(fds[0]), std::make_unique<wire>(fds[1])};
}

TEST(Wire, CarriesObjectsInTheirOrder)
{
    auto [one, other] = two_ends();
    EXPECT_FALSE(other->poll());
    EXPECT_TRUE(one->send({{"a", 1}}));
    EXPECT_TRUE(one->send({{"b", std::string(10000, 'x')}}));
    EXPECT_EQ(other->poll()->value("a", 0), 1);
    EXPECT_EQ(other->poll()->value("b", "").size(), 10000u);
    EXPECT_FALSE(other->poll());
    EXPECT_FALSE(other->is_closed());
    one.reset();
    EXPECT_FALSE(other->poll());
    EXPECT_TRUE(other->is_closed());
    EXPECT_FALSE(other->send({{"c", 1}}));
}

TEST(Wire, GivesWhatCameBeforeItsEnd)
{
    auto [one, other] = two_ends();
    EXPECT_TRUE(one->send({{"last", true}}));
    one.reset();
    EXPECT_TRUE(other->poll().has_value());
    EXPECT_FALSE(other->poll());
    EXPECT_TRUE(other->is_closed());
}

TEST(Wire, IsClosedByNonsense)
{
    auto [one, other] = two_ends();
    EXPECT_EQ(write(one->fd(), "nonsense\n", 9), 9);
    EXPECT_FALSE(other->poll());
    EXPECT_TRUE(other->is_closed());
}

TEST(CallingCard, GoesThroughTheProcessManager)
{
    const calling_card card{std::string(32, 'a'), {"10.0.0.1/4711", "fd00::1/4711"}};
    EXPECT_EQ(card.to_text().find_first_of(" =\n\""), std::string::npos);
    const calling_card there = calling_card::from_text(card.to_text());
    EXPECT_EQ(there.key, card.key);
    EXPECT_EQ(there.addresses, card.addresses);
    for (const char *bad : {"", "short;a/1", "0123456789abcdef0123456789abcdef"})
        EXPECT_THROW(calling_card::from_text(bad), error) << bad;
}

/** What is there may be another user's process, which would be told the key. */
TEST(CallingCard, HasAsManyAddressesAsFit)
{
    const std::string key(32, 'a');
    const calling_card card{key, {"10.0.0.1/40000", std::string(41, 'b'), "10.0.0.2/40000"}};
    EXPECT_EQ(card.to_text(32 + 30), key + ";10.0.0.1/40000;10.0.0.2/40000");
    EXPECT_EQ(card.to_text(32 + 29), key + ";10.0.0.1/40000");
    EXPECT_EQ(card.to_text(0), key + ";10.0.0.1/40000");
}

TEST(CallingCard, OfAnotherHostIsNotShownAtAddressesOfThisOne)
{
    using places = std::vector<std::string>;
    const auto called = [](places all, const std::set<std::string> &own) {
        return places_to_call({std::string(32, 'a'), std::move(all)}, own);
    };
    const std::set<std::string> own = {"127.0.0.1", "::1", "10.0.0.1", "172.17.0.1"};
    EXPECT_EQ(called({"10.0.0.2/5", "172.17.0.1/5", "127.0.0.1/5", "::1/5"}, own),
              places{"10.0.0.2/5"});
    const places here = {"10.0.0.1/5", "172.17.0.1/5", "127.0.0.1/5"};
    EXPECT_EQ(called(here, own), here);
    EXPECT_EQ(called({"127.0.0.1/5"}, own), places{"127.0.0.1/5"}) << "of a host without a network";
    EXPECT_EQ(called(here, {"127.0.0.1"}), (places{"10.0.0.1/5", "172.17.0.1/5"}));
}

TEST(Call, IsReceivedWithItsReason)
{
    call_receiver receiver;
    std::unique_ptr<wire> caller, called;
    std::thread other([&] { caller = call(receiver.card(), "successor", 10); });
    std::string why;
    while (!(called = receiver.poll(why)))
        std::this_thread::yield();
    other.join();
    EXPECT_EQ(why, "successor");
    ASSERT_TRUE(caller);
    EXPECT_TRUE(called->send({{"x", 1}}));
    pollfd event{caller->fd(), POLLIN, 0};
    EXPECT_EQ(poll(&event, 1, 10000), 1);
    EXPECT_EQ(caller->poll()->value("x", 0), 1);
}

/** Else what is sent after an object that is not answered waits for its acknowledgement. */
TEST(Call, SendsEachObjectAtOnce)
{
    call_receiver receiver;
    std::unique_ptr<wire> caller, called;
    std::thread other([&] { caller = call(receiver.card(), "successor", 10); });
    std::string why;
    while (!(called = receiver.poll(why)))
        std::this_thread::yield();
    other.join();
    for (const wire *end : {caller.get(), called.get()}) {
        int on = 0;
        socklen_t length = sizeof on;
        EXPECT_EQ(getsockopt(end->fd(), IPPROTO_TCP, TCP_NODELAY, &on, &length), 0);
        EXPECT_NE(on, 0);
    }
}

TEST(Call, IsNotHeardWithoutTheKey)
{
    call_receiver receiver;
    calling_card wrong = receiver.card();
    wrong.key[5] = wrong.key[5] == '0' ? '1' : '0';
    std::atomic<bool> over = false;
    std::thread other([&] {
        EXPECT_THROW(call(wrong, "successor", 5), error);
        over = true;
    });
    std::string why;
    while (!over) {
        EXPECT_EQ(receiver.poll(why), nullptr);
        std::this_thread::yield();
    }
    other.join();
}

/** Connects to @receiver as a stranger would, with a socket of its own. */
int connect_as_stranger(const call_receiver &receiver)
{
    const std::string &place = receiver.card().addresses.back();
    const std::size_t slash = place.rfind('/');
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    EXPECT_EQ(getaddrinfo(place.substr(0, slash).c_str(), place.substr(slash + 1).c_str(), &hints,
                          &found),
              0);
    const int fd = socket(found->ai_family, found->ai_socktype, 0);
    EXPECT_EQ(connect(fd, found->ai_addr, found->ai_addrlen), 0);
    freeaddrinfo(found);
    return fd;
}

/** The caller stays where poll(2) finds it, which must not return at once for ever. */
TEST(Call, WaitsWhereThereAreNoMoreDescriptors)
{
    call_receiver receiver;
    const int stranger = connect_as_stranger(receiver);
    rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    std::string why;
    EXPECT_EQ(receiver.poll(why), nullptr);
    setrlimit(RLIMIT_NOFILE, &before);
    std::vector<pollfd> events;
    const int rest_ms = receiver.watch(events);
    EXPECT_TRUE(events.empty());
    EXPECT_TRUE(rest_ms > 0 && rest_ms <= 1000) << rest_ms;
    std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms + 1));
    receiver.poll(why);
    receiver.watch(events);
    EXPECT_EQ(events.size(), 2u) << "the one that has waited is not taken";
    close(stranger);
}

TEST(Call, ClosesTheWireOfOneThatSaysNothing)
{
    call_receiver receiver;
    const int stranger = connect_as_stranger(receiver);
    std::string why;
    EXPECT_EQ(receiver.poll(why), nullptr);
    std::vector<pollfd> events;
    const int left_ms = receiver.watch(events);
    EXPECT_TRUE(left_ms > 0 && left_ms <= 5000) << left_ms;
    std::this_thread::sleep_for(std::chrono::milliseconds(left_ms + 1));
    EXPECT_EQ(receiver.poll(why), nullptr);
    char byte;
    EXPECT_EQ(recv(stranger, &byte, 1, 0), 0);
    EXPECT_EQ(receiver.watch(events), -1);
    close(stranger);
}

TEST(Call, StrangersMaySendWhatTheyLike)
{
    call_receiver receiver;
    std::string why;
    const std::string longest(5000, 'x');
    for (const std::string &sent :
         {std::string("{\"key\": 5}\n"), std::string("{\"key\": {\"key\": []}}\n"),
          std::string("[]\n"), std::string("{}\n"), std::string("\0\n", 2), longest, longest + "\n",
          "{\"key\": \"" + longest + "\"}\n"}) {
        const int fd = connect_as_stranger(receiver);
        ASSERT_EQ(send(fd, sent.data(), sent.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(sent.size()));
        char byte;
        ssize_t got;
        while ((got = recv(fd, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
            EXPECT_EQ(receiver.poll(why), nullptr) << sent;
        EXPECT_LE(got, 0) << "the connection is open: " << sent;
        close(fd);
    }
}

TEST(Call, WithTheKeyMayHaveNoReason)
{
    call_receiver receiver;
    std::string why = "before";
    const int fd = connect_as_stranger(receiver);
    const std::string sent = "{\"key\": \"" + receiver.card().key + "\", \"why\": 7}\n";
    ASSERT_EQ(send(fd, sent.data(), sent.size(), MSG_NOSIGNAL), static_cast<ssize_t>(sent.size()));
    std::unique_ptr<wire> called;
    while (!(called = receiver.poll(why)))
        std::this_thread::yield();
    EXPECT_EQ(why, "");
    close(fd);
}

/* ---- the process manager ---- */

struct manager_and_end {
    manager_and_end() : manager(-1)
    {
        int fds[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        manager = process_manager(fds[0]);
        end = fds[1];
    }
    std::string said() const
    {
        char text[2000];
        const ssize_t got = recv(end, text, sizeof text, MSG_DONTWAIT);
        return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    }
    void says(const std::string &text) const
    {
        EXPECT_EQ(write(end, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    process_manager manager;
    int end = -1;
};

TEST(ProcessManager, IsAskedInTheLinesOfPmi)
{
    const manager_and_end it;
    process_manager manager = it.manager;
    EXPECT_EQ(manager.ask("h2", "/bin/zcm-launch", "secret"), "");
    EXPECT_EQ(it.said(), "mcmd=spawn\nnprocs=1\nexecname=/bin/zcm-launch\ntotspawns=1\n"
                         "spawnssofar=1\nargcnt=0\npreput_num=1\npreput_key_0=zcm\n"
                         "preput_val_0=secret\ninfo_num=1\ninfo_key_0=host\ninfo_val_0=h2\n"
                         "endcmd\n");
    std::string problem = "?";
    EXPECT_FALSE(manager.answer(problem));
    it.says("cmd=spawn_result rc=");
    EXPECT_FALSE(manager.answer(problem));
    it.says("0\n");
    EXPECT_TRUE(manager.answer(problem));
    EXPECT_EQ(problem, "");
    it.says("cmd=other\ncmd=spawn_result rc=-1 errcodes=3\n");
    EXPECT_TRUE(manager.answer(problem));
    EXPECT_EQ(problem, "the process manager says: cmd=spawn_result rc=-1 errcodes=3");
    close(it.end);
    EXPECT_TRUE(manager.answer(problem));
    EXPECT_EQ(problem, "the process manager is gone");
}

TEST(ProcessManager, IsToldNothingThatWouldBeAnotherLine)
{
    const manager_and_end it;
    process_manager manager = it.manager;
    EXPECT_NE(manager.ask("h2\ncmd=abort", "/bin/x", "s"), "");
    EXPECT_NE(manager.ask("h2", "/bin/x", "a=b"), "");
    EXPECT_NE(manager.ask("h2", "/bin/x", std::string(2000, 's')), "");
    EXPECT_NE(process_manager(-1).ask("h2", "/bin/x", "s"), "");
    EXPECT_EQ(it.said(), "");
}

TEST(ProcessManager, HasTheSecretOfWhoAsked)
{
    const manager_and_end it;
    process_manager manager = it.manager;
    it.says("cmd=my_kvsname kvsname=kvs_1\n\ncmd=get_result rc=0 msg=success value=abc;1/2\n\n");
    EXPECT_EQ(manager.read_secret(5), "abc;1/2");
    EXPECT_EQ(it.said(), "cmd=get_my_kvsname\ncmd=get kvsname=kvs_1 key=zcm\n");
    EXPECT_THROW(manager.read_secret(0.2), error);
}

/* ---- a leaver that has its successor started ---- */

class scripted final : public launch_request {
  public:
    std::string ask(const std::string &host, const std::vector<calling_card> &leavers) override
    {
        asked.push_back(host);
        if (!at_once.empty())
            return at_once;
        if (then)
            other = std::thread([this, card = leavers.front()] { then(card); });
        return "";
    }
    bool answer(const std::string &, std::string &problem) override
    {
        problem = later;
        return !later.empty();
    }
    ~scripted() override
    {
        if (other.joinable())
            other.join();
    }
    steps asked;
    std::string at_once, later;
    std::function<void(const calling_card &)> then;
    std::thread other;
};

std::string why_not_started(scripted &by, double limit_s = 10)
{
    successor_start start("h2", 5);
    try {
        start.run({"", start.invitation()}, {}, &by, limit_s, [] { std::this_thread::yield(); });
    } catch (const error &problem) {
        return problem.what();
    }
    return "";
}

/** As zcm-launch: asks for the order, then calls each leaver, and does @next. */
void launch(const calling_card &card, const std::function<void(wire &)> &next)
{
    const auto line = call(card, "order", 10);
    std::optional<json> said;
    while (!(said = line->poll()))
        std::this_thread::yield();
    const start_order order = start_order::from_json(*said);
    EXPECT_EQ(order.leavers.size(), 1u);
    const auto to_leaver = call(order.leavers.at(0), "successor", 10);
    next(*to_leaver);
}

TEST(SuccessorStart, HasThePortOfTheSuccessor)
{
    successor_start start("h2", 5), same("h2", 7), other("h3", 9);
    scripted by;
    by.then = [](const calling_card &card) {
        const auto line = call(card, "order", 10);
        std::optional<json> said;
        while (!(said = line->poll()))
            std::this_thread::yield();
        const start_order order = start_order::from_json(*said);
        EXPECT_EQ(order.program, "/bin/p");
        EXPECT_EQ(order.leavers.size(), 2u); /* both that go there */
        call(order.leavers.at(0), "successor", 10)->send({{"port", "there"}});
    };
    start_order order;
    order.program = "/bin/p";
    const steps all = {"", start.invitation(), same.invitation(), other.invitation()};
    EXPECT_EQ(start.bytes_of(all), 12u);
    const auto started = start.run(all, order, &by, 10, [] { std::this_thread::yield(); });
    EXPECT_EQ(started.port, "there");
    EXPECT_EQ(by.asked, steps{"h2"});
}

/** Started before the ranks meet: its launcher calls the leaver without being asked. */
TEST(SuccessorStart, WaitsForOneThatStandsBy)
{
    successor_start start("h2", 5);
    std::thread launcher([card = calling_card::from_text(
                              json::parse(start.invitation()).at("card").get<std::string>())] {
        call(card, "successor", 10)->send({{"port", "there"}, {"facts", "all"}});
    });
    const auto started =
        start.run({"", start.invitation()}, {}, nullptr, 10, [] { std::this_thread::yield(); });
    launcher.join();
    EXPECT_EQ(started.port, "there");
    EXPECT_EQ(started.facts, "all");
}

TEST(SuccessorStart, SaysWhyThereIsNone)
{
    scripted at_once, later, silent, killed, gone, slow;
    at_once.at_once = "no";
    EXPECT_EQ(why_not_started(at_once), "cannot start a successor on h2: no");
    later.later = "the process manager is gone";
    EXPECT_EQ(why_not_started(later),
              "cannot start a successor on h2: the process manager is gone");
    EXPECT_EQ(why_not_started(silent, 1).find("no launcher on h2 after 1 s: mpiexec"), 0u);
    killed.then = [](const calling_card &card) {
        launch(card, [](wire &line) { line.send({{"ended", "was killed by signal 9 (Killed)"}}); });
    };
    EXPECT_EQ(why_not_started(killed), "the successor on h2 was killed by signal 9 (Killed) before "
                                       "it came to zcm_init()");
    gone.then = [](const calling_card &card) { launch(card, [](wire &) {}); };
    EXPECT_EQ(why_not_started(gone), "the launcher on h2 has ended");
    slow.then = [](const calling_card &card) {
        launch(card, [](wire &line) {
            while (!line.is_closed())
                line.poll();
        });
    };
    EXPECT_EQ(why_not_started(slow, 1), "the successor on h2 has not come to zcm_init() after 1 s");
}

TEST(SuccessorStart, LeavesItToTheFirstWhoseRankGoesToAHost)
{
    successor_start first("h2", 1), second("h2", 1);
    scripted by;
    try {
        second.run({first.invitation(), second.invitation()}, {}, &by, 0.3,
                   [] { std::this_thread::yield(); });
        FAIL() << "started by nobody";
    } catch (const error &) {
    }
    EXPECT_EQ(by.asked, steps{});
}

} // namespace
} // namespace zc::migrate
