#include "operator/node/core_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::node {
namespace {

using ::testing::ElementsAre;

// Two domains of two cores with two hardware threads each.
CorePool TwoDomains() {
  return CorePool({{.cpus = {0, 4}, .domain = 0},
                   {.cpus = {1, 5}, .domain = 0},
                   {.cpus = {2, 6}, .domain = 1},
                   {.cpus = {3, 7}, .domain = 1}});
}

// What a pod's process that asks so is told.
std::string Told(CorePool& pool, const std::string& uid, const std::string& request) {
  ProcessSpec process;
  process.environment = {"RINGMASTER_BIND=" + request};
  pool.Tell(uid, process);
  return process.environment.back();
}

TEST(CorePoolTest, TwoWorkersAreGivenADomainEach) {
  CorePool pool = TwoDomains();
  EXPECT_EQ(Told(pool, "a", "2+0"), "RINGMASTER_CORES=0-1,4-5");
  EXPECT_EQ(Told(pool, "b", "1+1"), "RINGMASTER_CORES=2-3,6-7");
}

TEST(CorePoolTest, SaysSoWhereTooFewAreLeft) {
  CorePool pool = TwoDomains();
  Told(pool, "a", "3+0");
  EXPECT_EQ(Told(pool, "b", "2+0"), "RINGMASTER_CORES=none");
  EXPECT_EQ(Told(pool, "c", "1+0"), "RINGMASTER_CORES=3,7");
}

TEST(CorePoolTest, WhatAPodHadIsFreeForTheNext) {
  CorePool pool = TwoDomains();
  Told(pool, "a", "2+0");
  Told(pool, "b", "2+0");
  pool.Release("a");
  pool.Release("nobody");
  EXPECT_EQ(Told(pool, "c", "2+0"), "RINGMASTER_CORES=0-1,4-5");
}

TEST(CorePoolTest, TellsNothingToAProcessThatAsksForNothing) {
  CorePool pool = TwoDomains();
  ProcessSpec process;
  process.environment = {"PATH=/bin", "RINGMASTER_BINDING=2+0"};
  pool.Tell("a", process);
  EXPECT_THAT(process.environment, ElementsAre("PATH=/bin", "RINGMASTER_BINDING=2+0"));
  EXPECT_EQ(Told(pool, "b", "many"), "RINGMASTER_BIND=many");
}

}  // namespace
}  // namespace ringmaster::node
