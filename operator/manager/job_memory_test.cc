#include "operator/manager/job_memory.h"

#include <gtest/gtest.h>

namespace ringmaster::manager {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const kube::ObjectKey kJob{"default", "digits"};

class JobMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { memory_.Meet(kJob, "uid-1"); }
  void Refuse(const std::string& words, const std::string& reason = "Forbidden") {
    memory_.NoteRefused(kJob, generation_, {.reason = reason, .words = words});
  }
  std::string Words() {
    const auto refused = memory_.Tell(kJob);
    return refused ? refused->words : "";
  }

  Duration Held() { return memory_.CreationHeld(kJob, generation_); }

  std::int64_t generation_ = 1;
  FakeClock clock_;
  JobMemory memory_{clock_, {.initial = seconds(1), .maximum = seconds(3)}};
};

TEST_F(JobMemoryTest, KnowsNothingOfAJobBeforeADecisionWasCarriedOut) {
  EXPECT_FALSE(memory_.Tried(kJob));
  EXPECT_FALSE(memory_.Tell(kJob).has_value());
  EXPECT_FALSE(memory_.NoteTaken(kJob)) << "nothing was refused";
  EXPECT_TRUE(memory_.Tried(kJob));
}

TEST_F(JobMemoryTest, KeepsAFirstStatusUntilOneWasStoredOrTheJobIsAnother) {
  EXPECT_FALSE(memory_.FirstStatus(kJob).has_value());
  memory_.KeepFirstStatus(kJob, {.state = "Pending"});
  memory_.NoteStatusRefused(kJob);
  memory_.NoteStatusTaken(kJob, /*stored=*/false);
  EXPECT_EQ(memory_.FirstStatus(kJob)->state, "Pending");
  memory_.NoteStatusTaken(kJob);
  EXPECT_FALSE(memory_.FirstStatus(kJob).has_value());
  memory_.KeepFirstStatus(kJob, {.state = "Pending"});
  memory_.Meet(kJob, "uid-2");
  EXPECT_FALSE(memory_.FirstStatus(kJob).has_value());
}

TEST_F(JobMemoryTest, TellsTheFirstRefusalUntilItIsTaken) {
  Refuse("request 1");
  EXPECT_TRUE(memory_.Tried(kJob));
  EXPECT_EQ(memory_.Tell(kJob)->reason, "Forbidden");
  EXPECT_EQ(Words(), "request 1");
  EXPECT_TRUE(memory_.NoteTaken(kJob));
  EXPECT_EQ(Words(), "");
}

TEST_F(JobMemoryTest, OtherWordsTakeItsPlaceEverMoreSeldom) {
  Refuse("request 1");
  EXPECT_EQ(Words(), "request 1");
  clock_.Advance(milliseconds(999));
  Refuse("request 2");
  EXPECT_EQ(Words(), "request 1");
  clock_.Advance(milliseconds(1));
  Refuse("request 3");
  EXPECT_EQ(Words(), "request 3");
  clock_.Advance(milliseconds(1999));
  Refuse("request 4");
  EXPECT_EQ(Words(), "request 3") << "it stands for twice as long";
  clock_.Advance(milliseconds(1));
  Refuse("request 5");
  EXPECT_EQ(Words(), "request 5");
  clock_.Advance(seconds(3));
  Refuse("request 6");
  EXPECT_EQ(Words(), "request 6") << "for the maximum at most";
}

TEST_F(JobMemoryTest, StandsFromWhenItIsToldAndNotFromWhenItHappened) {
  Refuse("request 1");
  Refuse("request 2");
  EXPECT_EQ(Words(), "request 2") << "nobody was told of the first";
  clock_.Advance(milliseconds(1));
  Refuse("request 3");
  EXPECT_EQ(Words(), "request 2");
}

TEST_F(JobMemoryTest, HoldsTheStatusBackEverLongerWhileItIsRefused) {
  EXPECT_EQ(memory_.StatusHeld(kJob), Duration(0));
  for (const int pause : {1, 2, 3, 3}) {
    memory_.NoteStatusRefused(kJob);
    EXPECT_EQ(memory_.StatusHeld(kJob), seconds(pause));
    clock_.Advance(seconds(pause));
    EXPECT_EQ(memory_.StatusHeld(kJob), Duration(0));
  }
  memory_.NoteStatusTaken(kJob);
  memory_.NoteStatusRefused(kJob);
  EXPECT_EQ(memory_.StatusHeld(kJob), seconds(1));
}

TEST_F(JobMemoryTest, HoldsCreationBackEverLongerWhileAnythingIsRefused) {
  EXPECT_EQ(Held(), Duration(0));
  int request = 0;
  for (const int pause : {1, 2, 3, 3}) {
    Refuse("request " + std::to_string(++request));
    EXPECT_EQ(Held(), seconds(pause));
    clock_.Advance(seconds(pause));
    EXPECT_EQ(Held(), Duration(0));
    memory_.NoteTried(kJob);
  }
  memory_.NoteTaken(kJob);
  Refuse("request 1");
  EXPECT_EQ(Held(), seconds(1));
}

TEST_F(JobMemoryTest, WhatIsRefusedWhileCreationIsHeldProlongsNothing) {
  Refuse("pods");
  clock_.Advance(milliseconds(900));
  Refuse("deleting pods");
  EXPECT_EQ(Held(), milliseconds(100));
}

TEST_F(JobMemoryTest, AJobThatWasChangedIsTriedAtOnce) {
  for (int i = 0; i < 3; ++i) {
    Refuse("no such queue");
    clock_.Advance(Held());
  }
  Refuse("no such queue");
  generation_ = 2;
  EXPECT_EQ(Held(), Duration(0));
  Refuse("no such queue either");
  EXPECT_EQ(Held(), seconds(1));
}

TEST_F(JobMemoryTest, AnotherReasonIsNoQuickerThanOtherWords) {
  Refuse("request 1");
  EXPECT_EQ(Words(), "request 1");
  Refuse("a stranger's", "NameTaken");
  EXPECT_EQ(Words(), "request 1");
  clock_.Advance(seconds(1));
  Refuse("a stranger's", "NameTaken");
  EXPECT_EQ(memory_.Tell(kJob)->reason, "NameTaken");
}

TEST_F(JobMemoryTest, TheSameWordsDoNotProlongTheirTime) {
  for (int i = 0; i <= 10; ++i) {
    Refuse("request 1");
    EXPECT_EQ(Words(), "request 1");
    if (i < 10) clock_.Advance(milliseconds(100));
  }
  Refuse("request 2");
  EXPECT_EQ(Words(), "request 2");
}

TEST_F(JobMemoryTest, WhatWasTakenOnceIsToldAtOnceWhenItIsRefusedAgain) {
  Refuse("request 1");
  memory_.NoteTaken(kJob);
  Refuse("request 2");
  EXPECT_EQ(Words(), "request 2");
}

TEST_F(JobMemoryTest, AJobOfTheSameNameIsAnother) {
  Refuse("request 1");
  EXPECT_FALSE(memory_.Meet(kJob, "uid-1"));
  EXPECT_EQ(Words(), "request 1");
  EXPECT_TRUE(memory_.Meet(kJob, "uid-2"));
  EXPECT_FALSE(memory_.Tried(kJob));
  EXPECT_EQ(Words(), "");
  memory_.Forget(kJob);
  EXPECT_FALSE(memory_.Meet(kJob, "uid-3")) << "nobody is replaced";
}

}  // namespace
}  // namespace ringmaster::manager
