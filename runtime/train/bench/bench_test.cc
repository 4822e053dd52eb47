// The benchmark's parts, and the program itself.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/count_allocations.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/bench/dump.h"
#include "runtime/train/bench/limit.h"
#include "runtime/train/bench/measure.h"
#include "runtime/train/bench/report.h"
#include "runtime/train/bench/synthetic_data.h"
#include "runtime/train/bench/trial.h"

namespace ringmaster::train::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Options SmallOptions() {
  Options options;
  options.model = "mlp";
  options.batch = 8;
  options.seconds = 0;
  return options;
}

TEST(BenchMeasureTest, TheMedianOfAnEvenNumberLiesBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 30}), 3);
}

TEST(BenchMeasureTest, CountsForwardBackwardAndAgainOfAnOpTogether) {
  EXPECT_EQ(ClassOf("conv2d"), "conv2d");
  EXPECT_EQ(ClassOf("conv2d_grad_weight"), "conv2d");
  EXPECT_EQ(ClassOf("relu_grad"), "relu");
  EXPECT_EQ(ClassOf("batch_norm_again"), "batch_norm");
}

TEST(BenchMeasureTest, TimesStepsOfTheNetworkThatWasAskedFor) {
  const auto result = Measure(SmallOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->parameters, 64 * 128 + 128 + 128 * 10 + 10);
  EXPECT_GE(result->steps, 5);
  EXPECT_GT(result->step_seconds, 0);
  EXPECT_DOUBLE_EQ(result->samples_per_second, 8 / result->step_seconds);
  EXPECT_GT(result->peak_bytes, uint64_t{1} << 20);
}

TEST(BenchMeasureTest, EveryOpOfTheStepAndWhatIsBesideThemHasItsShare) {
  const auto result = Measure(SmallOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  double ops = 0, shares = 0;
  for (const graph::OpProfile& op : result->profile.ops)
    ops += std::chrono::duration<double>(op.time).count();
  EXPECT_GE(result->profile.steps, 5);
  EXPECT_GT(ops, 0);
  std::vector<std::string> names;
  for (const Share& share : result->shares) {
    names.push_back(share.what);
    shares += share.seconds;
  }
  EXPECT_GE(shares, ops / static_cast<double>(result->profile.steps));
  for (const char* name : {"linear", "matmul", "relu", "softmax_cross_entropy", "(optimizer)",
                           "(sum over workers)", "(samples, executor)"})
    EXPECT_THAT(names, ::testing::Contains(name));
}

TEST(BenchMeasureTest, SharesOfAStepInShardsAreThoseOfAllItsShards) {
  Options options = SmallOptions();
  options.shards = 4;
  const auto result = Measure(options);
  ASSERT_TRUE(result.ok()) << result.status();
  double shares = 0;
  for (const Share& share : result->shares) shares += share.seconds;
  EXPECT_GT(shares, result->step_seconds / 4);
  EXPECT_EQ(result->profile.steps, result->steps);
  EXPECT_THAT(Text(options, *result), HasSubstr("batch 8 in 4 shards, f32"));
  options.shards = 3;
  EXPECT_THAT(std::string(Measure(options).status().message()),
              HasSubstr("a batch of 8 cannot be cut into 3 shards"));
}

TEST(BenchTrialTest, AStepIsTheTrainersItChangesTheWeightsAndCounts) {
  const auto trial = Trial::Make(*MakeSubject(SmallOptions()), 8, 16, kernels::Selection::kFastest);
  ASSERT_TRUE(trial.ok()) << trial.status();
  LoneWorker& worker = (*trial)->worker();
  const std::string before = worker.replica().WeightsDigest();
  ASSERT_TRUE(worker.Step().ok());
  EXPECT_EQ(worker.replica().step(), 1u);
  EXPECT_NE(worker.replica().WeightsDigest(), before);
  EXPECT_GT(worker.replica().loss(), 0);
}

TEST(BenchTrialTest, ANetworkThatNobodyKnowsIsRefusedWithThoseThatAreKnown) {
  Options options = SmallOptions();
  options.model = "lenet-6000";
  const auto result = Measure(options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              ::testing::AllOf(HasSubstr("lenet-6000"), HasSubstr("lenet-bn")));
}

TEST(BenchTrialTest, WhatTheSmallNetworkDoesNotHaveIsRefused) {
  Options layers = SmallOptions();
  layers.layers = 3;
  Options dropout = SmallOptions();
  dropout.dropout = 0.1;
  for (const auto& [options, advice] :
       {std::pair{layers, "leave out --layers"}, std::pair{dropout, "leave out --dropout"}}) {
    for (const absl::Status& status :
         {Measure(options).status(), MeasureLimit(options).status(), Dump(options)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(advice));
    }
  }
}

TEST(BenchTrialTest, SamplesThatDoNotFitTheNetworkAreRefused) {
  Options options = SmallOptions();
  options.model = "lenet-bn";
  options.input = {7};
  EXPECT_EQ(Measure(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BenchDataTest, SamplesRepeatAfterThoseThatWereDrawn) {
  const data::SampleFormat format{.input = {{5}, tensor::DType::kF32}, .classes = 3};
  const data::Splits splits = MakeSyntheticData(format, 2, 100);
  tensor::Tensor inputs({3, 5}, tensor::DType::kF32), labels({3}, tensor::DType::kI32);
  const uint32_t rows[] = {0, 1, 98};
  ASSERT_TRUE(splits.train->Fill(rows, inputs, labels).ok());
  const auto x = inputs.span<float>();
  EXPECT_TRUE(std::equal(x.begin(), x.begin() + 5, x.begin() + 10));
  EXPECT_FALSE(std::equal(x.begin(), x.begin() + 5, x.begin() + 5));
  for (const int32_t label : labels.span<int32_t>()) EXPECT_TRUE(label >= 0 && label < 3);
  EXPECT_EQ(splits.train->size(), 100u);
  EXPECT_EQ(splits.held_out->size(), 0u);
}

TEST(BenchDataTest, TokensAndTheirLabelsAreOfTheVocabulary) {
  const data::SampleFormat format{
      .input = {{6}, tensor::DType::kI32}, .label_shape = {6}, .classes = 5};
  const data::Splits splits = MakeSyntheticData(format, 4, 4);
  tensor::Tensor inputs({4, 6}, tensor::DType::kI32), labels({4, 6}, tensor::DType::kI32);
  const uint32_t rows[] = {0, 1, 2, 3};
  ASSERT_TRUE(splits.train->Fill(rows, inputs, labels).ok());
  for (const tensor::Tensor* drawn : {&inputs, &labels}) {
    const auto values = drawn->span<int32_t>();
    EXPECT_GE(*std::ranges::min_element(values), 0);
    EXPECT_LT(*std::ranges::max_element(values), 5);
    EXPECT_NE(*std::ranges::min_element(values), *std::ranges::max_element(values));
  }
}

TEST(BenchDumpTest, LeavesOutDropoutWhereTheNetworkHasIt) {
  Options options = SmallOptions();
  options.dump = ::testing::TempDir() + "/bench_dump_dropout.safetensors";
  for (const char* model : {"lenet", "lenet-bn"}) {
    options.model = model;
    ASSERT_TRUE(Dump(options).ok()) << model;
    std::filesystem::remove(options.dump);
  }
}

TEST(BenchDumpTest, HoldsABatchWeightsGradientsAndFallingLosses) {
  Options options = SmallOptions();
  options.dump = ::testing::TempDir() + "/bench_dump.safetensors";
  options.dump_steps = 4;
  ASSERT_TRUE(Dump(options).ok());
  const auto content = ReadFile(options.dump);
  ASSERT_TRUE(content.ok()) << content.status();
  const auto file = checkpoint::SafetensorsFile::Parse(*content, options.dump);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::remove(options.dump);
  std::vector<std::string> names;
  for (const checkpoint::TensorView& tensor : file->tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, UnorderedElementsAre("inputs", "labels", "weights/linear1.weight",
                                          "weights/linear1.bias", "weights/linear3.weight",
                                          "weights/linear3.bias", "gradients/linear1.weight",
                                          "gradients/linear1.bias", "gradients/linear3.weight",
                                          "gradients/linear3.bias", "losses"));
  const checkpoint::TensorView& last = file->tensors().back();
  const auto* losses = reinterpret_cast<const float*>(last.data.data());
  ASSERT_EQ(last.name, "losses");
  ASSERT_EQ(last.shape, std::vector<int64_t>{4});
  EXPECT_LT(losses[3], losses[0]);
  EXPECT_EQ(file->metadata().at("learning_rate"), "0.01");
}

// By name, what a dump with `options` holds of this type.
template <typename T>
std::map<std::string, std::vector<T>> Dumped(Options options, const char* dtype) {
  options.dump = ::testing::TempDir() + "/bench_dump_in_two_types.safetensors";
  EXPECT_TRUE(Dump(options).ok());
  const auto file = checkpoint::SafetensorsFile::Parse(*ReadFile(options.dump), options.dump);
  EXPECT_TRUE(file.ok()) << file.status();
  std::filesystem::remove(options.dump);
  std::map<std::string, std::vector<T>> found;
  for (const checkpoint::TensorView& tensor : file->tensors()) {
    if (tensor.dtype != dtype) continue;
    const auto* values = reinterpret_cast<const T*>(tensor.data.data());
    found[tensor.name].assign(values, values + tensor.data.size() / sizeof(T));
  }
  return found;
}

TEST(BenchDumpTest, StepsInDoubleAreThoseOfTheTrainerButForRounding) {
  Options options = SmallOptions();
  options.dump_steps = 4;
  for (const char* model : {"mlp", "lenet-bn"}) {
    options.model = model;
    options.in_double = false;
    const auto trained = Dumped<float>(options, "F32");
    options.in_double = true;
    const auto exact = Dumped<double>(options, "F64");
    ASSERT_EQ(exact.at("losses").size(), 4U) << model;
    for (const auto& [name, values] : trained) {
      EXPECT_TRUE(exact.contains(name) || !name.starts_with("gradients/")) << model << " " << name;
    }
    for (const auto& [name, values] : exact) {
      ASSERT_EQ(values.size(), trained.at(name).size()) << model << " " << name;
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], trained.at(name)[i], 2e-4) << model << " " << name << " " << i;
    }
  }
}

// A program's output and how it ended.
struct Ended {
  std::string output;
  int code = -1;
};

Ended RunProgram(const std::string& arguments, const std::string& environment = "") {
  const char* bin = std::getenv("RINGMASTER_BIN_DIR");
  const std::string command =
      fmt::format("{} timeout 60 {}/ringmaster-bench-train {} 2>&1", environment,
                  bin == nullptr ? "build/release/bin" : bin, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  Ended ended;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof(buffer), pipe))
    ended.output.append(buffer, got);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST(BenchProgramTest, SaysWhatAStepTakesAndWhatItIsMadeOf) {
  const Ended run = RunProgram("--model lenet-bn --batch 4 --input 1x8x8 --threads 2 --seconds 0");
  EXPECT_EQ(run.code, 0) << run.output;
  for (const char* part :
       {"lenet-bn: batch 4, f32, 2 threads", "59,970", "samples/s", "compiled in",
        " in the first step", "peak memory", "allocations in a step: ", "conv2d", "(optimizer)"})
    EXPECT_THAT(run.output, HasSubstr(part));
}

// On a whole batch of images as large as published ones, and of text.
TEST(BenchProgramTest, CountsWhatAStepAllocates) {
  if (!kCountsMalloc) GTEST_SKIP() << "a sanitizer has an operator new of its own";
  for (const char* network :
       {"--model mlp", "--model lenet", "--model resnet-18 --batch 2 --input 3x224x224",
        "--model gpt-2 --batch 1 --layers 2"}) {
    const Ended run = RunProgram(std::string(network) + " --threads 2 --seconds 0 --json");
    ASSERT_EQ(run.code, 0) << run.output;
    EXPECT_EQ(nlohmann::json::parse(run.output)["most_allocations"], 0) << network;
  }
}

TEST(BenchProgramTest, TakesANetworkWithoutItsHyphens) {
  const Ended run = RunProgram("--model lenetbn --batch 4 --input 1x8x8 --seconds 0");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("lenet-bn: batch 4"));
}

TEST(BenchProgramTest, WritesWhatTheNetworkBecomesStageByStage) {
  const TemporaryFolder folder = *TemporaryFolder::Make();
  const Ended run =
      RunProgram("--model mlp --seconds 0 --dump-graph " + (folder.path() / "graph").string());
  EXPECT_EQ(run.code, 0) << run.output;
  for (const char* stage : {"1-model", "2-gradients", "3-plan"}) {
    EXPECT_THAT(*ReadFile(folder.path() / "graph" / (std::string(stage) + ".txt")),
                HasSubstr("linear"));
    EXPECT_THAT(*ReadFile(folder.path() / "graph" / (std::string(stage) + ".dot")),
                HasSubstr("digraph"));
  }
  EXPECT_NE(RunProgram("--model mlp --limit --dump-graph " + folder.path().string()).code, 0);
}

TEST(BenchProgramTest, SaysItAsJson) {
  const Ended run = RunProgram("--model mlp --seconds 0 --json");
  EXPECT_EQ(run.code, 0) << run.output;
  const auto json = nlohmann::json::parse(run.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << run.output;
  EXPECT_EQ(json["batch"], 32);
  EXPECT_NEAR(json["samples_per_second"].get<double>() * json["step_seconds"].get<double>(), 32,
              1e-6);
  EXPECT_GE(json["first_step_extra_seconds"].get<double>(), 0);
  EXPECT_LE(json["first_step_extra_seconds"].get<double>(), json["compile_seconds"].get<double>());
  double shares = 0;
  for (const auto& [what, share] : json["share"].items()) shares += share.get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(json["ops"][0]["op"], "linear");
}

TEST(BenchProgramTest, BindsItsThreadsOrSaysWhyItCannot) {
  const Ended run = RunProgram("--model mlp --seconds 0 --bind");
  const bool shared = run.output.find("the control group has the time of") != std::string::npos;
  EXPECT_EQ(run.code, shared ? 1 : 0) << run.output;
  if (shared) return;
  EXPECT_THAT(run.output, HasSubstr("mlp: batch 32, f32, 1 thread on core "));
  const Ended refused = RunProgram("--model mlp --seconds 0 --bind --threads 1024");
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.output, HasSubstr("1024 threads that compute"));
}

TEST(BenchProgramTest, ProfilesEveryOpWithTheKernelThatRanIt) {
  const Ended run = RunProgram("--model mlp --seconds 0 --profile");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("grad/linear1/weight"));
}

TEST(BenchProgramTest, TakesNoWiderVectorsThanTheEnvironmentAllows) {
  const Ended run = RunProgram("--model resnet-18 --input 3x32x32 --batch 2 --seconds 0 --profile",
                               "RINGMASTER_MAX_VECTORS=avx2");
  EXPECT_EQ(run.code, 0) << run.output;
  for (const char* wider : {"avx512", "vector/direct", "vector/amx"})
    EXPECT_THAT(run.output, ::testing::Not(HasSubstr(wider)));
  const Ended refused = RunProgram("--model mlp --seconds 0", "RINGMASTER_MAX_VECTORS=wide");
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.output,
              HasSubstr("RINGMASTER_MAX_VECTORS: 'wide' is not one of avx2, avx512"));
}

TEST(BenchLimitTest, CountsEveryConvolutionAndProductOfForwardAndBackward) {
  Options options = SmallOptions();
  options.model = "lenet";
  const auto limit = MeasureLimit(options);
  ASSERT_TRUE(limit.ok()) << limit.status();
  // Two convolutions and two linear layers, each with gradients of weights and, but the first, of
  // its input.
  int64_t ops = 0;
  double seconds = 0;
  for (const LimitPart& part : limit->parts) {
    ops += part.count;
    seconds += static_cast<double>(part.count) * part.seconds;
  }
  EXPECT_EQ(ops, 4 + 4 + 3);
  EXPECT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(limit->step_seconds, seconds);
  EXPECT_DOUBLE_EQ(limit->samples_per_second, 8 / seconds);
}

TEST(BenchProgramTest, SaysWhatTheArithmeticAloneTakes) {
  const std::string flags = "--model lenet-bn --batch 4 --threads 2 --seconds 0 --limit";
  const Ended run = RunProgram(flags + " --profile");
  EXPECT_EQ(run.code, 0) << run.output;
  for (const char* part : {"lenet-bn: batch 4", "samples/s", "conv2d_grad_weight", "matmul"})
    EXPECT_THAT(run.output, HasSubstr(part));
  const auto json = nlohmann::json::parse(RunProgram(flags + " --json").output, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["limit_samples_per_second"], 0);
}

// As a user would who takes any batch: the samples alone are 631 GB.
TEST(BenchProgramTest, RefusesABatchThatTheMachineHasNoMemoryFor) {
  const std::string flags = "--model resnet-50 --batch 1048576 ";
  for (const char* more : {"", "--shards 0", "--dump /dev/null"}) {
    const Ended run = RunProgram(flags + more);
    EXPECT_EQ(run.code, 71) << run.output;
    for (const char* part :
         {"beside 631.3", " for 1,048,576 samples: the model needs at least ",
          " for weights and gradients of 25,557,032 parameters, ",
          " for the values of a shard of 1048576 samples, the largest of which is ",
          "; ask for a smaller batch (--batch) or for more shards of it (--shards)\n"})
      EXPECT_THAT(run.output, HasSubstr(part)) << more;
  }
  const Ended limit = RunProgram(flags + "--limit");
  EXPECT_EQ(limit.code, 71) << limit.output;
  for (const char* part :
       {"conv2d alone, [1048576, ", " GB of memory, ", " are available; ask for "})
    EXPECT_THAT(limit.output, HasSubstr(part));
}

TEST(BenchProgramTest, DrawsAStepOpByOp) {
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  const std::filesystem::path file = folder.path() / "made" / "step.json";
  const Ended run = RunProgram("--model mlp --seconds 0 --trace " + file.string());
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr(file.string()));
  std::map<int, std::string> tracks;
  std::map<std::string, std::map<std::string, nlohmann::json>> events;
  for (const nlohmann::json& event : nlohmann::json::parse(ReadFile(file).value())) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") events[tracks.at(event["tid"])][event["name"]] = event;
  }
  const auto begin = [](const nlohmann::json& event) { return event["ts"].get<double>(); };
  const auto end = [&](const nlohmann::json& event) {
    return begin(event) + event["dur"].get<double>();
  };
  EXPECT_GT(events["step"].at("commit")["dur"].get<double>(), 0);
  const nlohmann::json& compute = events["step"].at("compute");
  const nlohmann::json& forward = events["forward"].at("linear1");
  const nlohmann::json& backward = events["backward"].at("grad/linear1/weight");
  EXPECT_LT(begin(compute), begin(forward));
  EXPECT_LE(end(forward), begin(backward));
  EXPECT_LE(end(backward), end(compute));
  EXPECT_THAT(forward["args"]["detail"], ::testing::StartsWith("linear by "));
  for (const auto& [name, event] : events["forward"])
    EXPECT_THAT(name, ::testing::Not(::testing::StartsWith("grad/")));
  const Ended full = RunProgram("--model mlp --seconds 0 --trace /dev/full");
  EXPECT_EQ(full.code, 71) << full.output;
}

TEST(BenchProgramTest, SaysWhichFlagIsWrong) {
  for (const char* arguments :
       {"", "--model mlp --batch 0", "--model mlp --threads 0", "--model mlp --dtype f17",
        "--model mlp --input 3y4", "--model mlp --input 0", "--model mlp --classes 1",
        "--model mlp --seconds -1", "--model mlp --limit --dump x",
        "--model mlp --dump x --dump-steps 0", "--model mlp surplus"}) {
    const Ended run = RunProgram(arguments);
    EXPECT_EQ(run.code, 64) << arguments << ": " << run.output;
    EXPECT_FALSE(run.output.empty()) << arguments;
  }
  for (const char* arguments :
       {"--model mlp --dtype f64", "--model mlp --dtype f64 --dump x --shards 2"}) {
    const Ended run = RunProgram(arguments);
    EXPECT_EQ(run.code, 65) << arguments << ": " << run.output;
    EXPECT_THAT(run.output, HasSubstr("--dtype: f64 is for what --dump writes")) << arguments;
  }
  const Ended unknown = RunProgram("--model resnet-fifty");
  EXPECT_EQ(unknown.code, 65) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("resnet-fifty"));
}

}  // namespace
}  // namespace ringmaster::train::bench
