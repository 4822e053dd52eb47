#include "operator/api/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/networks.h"
#include "operator/api/testing.h"

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's
using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Layer Named(const std::string& name, Layer layer) {
  layer.name = name;
  return layer;
}

TEST(ValidationTest, AcceptsTheExample) {
  EXPECT_THAT(ProblemLines(Digits()), IsEmpty());
}

TEST(ValidationTest, KeepsShardsBetweenTheWorkersAndTheBatch) {
  TrainingJob job = Digits();
  job.spec.trainer->batch.shards = 65;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.batch.shards: 65 is more than batch.size (64); "
                          "a shard holds at least one sample"));
  job.spec.trainer->batch.shards = 3;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("3 is less than the 4 workers that the job may have")));
  job.spec.trainer->batch.shards = 0;
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  job.spec.trainer->batch.size = 3;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("spec.trainer.batch.size: 3 is less than the 4 workers")));
}

TEST(ValidationTest, MatchesTheLaunchModeToTheProgram) {
  TrainingJob job = Digits();
  job.spec.launch = Launch{.mode = LaunchMode::kTorch};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("spec.launch.mode: Torch starts a program of your own")));
  job.spec.trainer.reset();
  job.spec.launch->mode = LaunchMode::kNative;
  job.spec.workers.template_ = Json::parse(R"({"spec": {"containers": [{"command": []}]}})");
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("containers[0].command: is empty"),
                          HasSubstr("spec.launch.mode: Native runs spec.trainer")));
}

TEST(ValidationTest, ChecksLayersWithoutShapes) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {
      .sequential = Sequential{.layers = {
                                   Named("a", {.conv2d = Conv2d{.channels = 8, .kernel = 3}}),
                                   {.max_pool = Pool{.kernel = 2, .padding = 2}},
                                   {.flatten = Empty{}},
                                   Named("a", {.conv2d = Conv2d{.channels = 8, .kernel = 3}}),
                                   {.linear = Linear{.features = 12}},
                               }}};
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre(
          "spec.trainer.model.sequential.layers[3].name: layers[0] has the name a already",
          "spec.trainer.model.sequential.layers[1].maxPool.padding: 2 is more than half the kernel "
          "(2): a "
          "window could lie outside the image",
          "spec.trainer.model.sequential.layers[3]: conv2d needs images, but layers[2] (flatten) "
          "before it "
          "leaves none",
          "spec.trainer.model.sequential.layers[4].linear.features: 12 scores for 10 classes "
          "(data.csv.classes); make them equal"));
}

// Lines of the digits job with these layers instead.
std::vector<std::string> LinesOf(std::vector<Layer> layers) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {.sequential = Sequential{.layers = std::move(layers)}};
  return ProblemLines(job);
}

TEST(ValidationTest, NamesTheFirstLayerThatDoesNotFitAndWhatReachesIt) {
  const Layer flatten{.flatten = Empty{}}, head{.linear = Linear{.features = 10}};
  const Layer pool{.max_pool = Pool{.kernel = 2}};
  EXPECT_THAT(LinesOf({{.conv2d = Conv2d{.channels = 8, .kernel = 3, .dilation = 3}},
                       {.conv2d = Conv2d{.channels = 8, .kernel = 1, .groups = 4}},
                       {.adaptive_average_pool = AdaptivePool{}},
                       flatten,
                       head}),
              IsEmpty());
  EXPECT_THAT(LinesOf({{.adaptive_max_pool = AdaptivePool{.size = 3}},
                       {.conv2d = Conv2d{.channels = 8, .kernel = 4}},
                       flatten,
                       head}),
              ElementsAre(HasSubstr("layers[1].conv2d.kernel: a kernel of 4 by 4 does not fit into "
                                    "[1, 3, 3] with a padding of 0")));
  EXPECT_THAT(LinesOf({pool, {.conv2d = Conv2d{.channels = 8, .kernel = 5}}, pool, flatten, head}),
              ElementsAre("spec.trainer.model.sequential.layers[1].conv2d.kernel: a kernel of 5 by "
                          "5 does not fit into [1, 4, 4] with a padding of 0; make it smaller, or "
                          "shrink the image less before it"));
  EXPECT_THAT(
      LinesOf({{.conv2d = Conv2d{.channels = 8, .kernel = 3, .dilation = 4}}, flatten, head}),
      ElementsAre(HasSubstr("a kernel of 3 by 3, every 4 points, does not fit into [1, 8, 8]")));
  EXPECT_THAT(LinesOf({pool, pool, pool, pool, flatten, head}),
              ElementsAre(HasSubstr("layers[3].maxPool.kernel: a window of 2 by 2 does not fit "
                                    "into [1, 1, 1]")));
  EXPECT_THAT(LinesOf({{.conv2d = Conv2d{.channels = 8, .kernel = 3}},
                       {.conv2d = Conv2d{.channels = 9, .kernel = 3, .groups = 3}},
                       flatten,
                       head}),
              ElementsAre("spec.trainer.model.sequential.layers[1].conv2d.groups: 3 does not "
                          "divide both the 8 channels that reach it and its own 9"));
  EXPECT_THAT(LinesOf({pool, head}),
              ElementsAre("spec.trainer.model.sequential.layers[1].linear: needs a row of "
                          "features, but [1, 4, 4] reaches it; put a flatten before it"));
  EXPECT_THAT(LinesOf({flatten}),
              ElementsAre("spec.trainer.model.sequential.layers: the network ends with [64], but "
                          "10 classes (data.csv.classes) need as many scores; end with a linear "
                          "layer of 10 features"));
}

TEST(ValidationTest, KnowsTheZoosNamesAsTheSchemaDoes) {
  const schema::Field* name = schema::FindField(SchemaOf<Zoo>(), "name");
  ASSERT_NE(name, nullptr);
  std::vector<std::string> known;
  for (const networks::Network& network : networks::kNetworks) known.emplace_back(network.name);
  EXPECT_EQ(name->allowed, known);
}

TEST(ValidationTest, ChecksANetworkOfTheZooAndItsData) {
  TrainingJob job = Digits();
  Zoo& zoo = *job.spec.trainer->model.zoo;
  zoo = {.name = "resnet-18", .width = 0.5};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  zoo = {.name = "resnet-18", .dropout = 0.1, .layers = 3};
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre("spec.trainer.model.zoo.dropout: resnet-18 has no dropout: leave it out",
                  "spec.trainer.model.zoo.layers: the number of resnet-18's layers is fixed: leave "
                  "it out"));
  zoo = {.name = "alexnet"};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.data.csv.shape: images of [1, 8, 8] are too small for "
                          "alexnet, whose layers need at least 63 by 63 points; take larger ones, "
                          "or lenet-bn, resnet-18, resnet-50"));
  job.spec.trainer->data.csv->shape = {64};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.data.csv.shape: alexnet needs images, [channels, height, "
                          "width], not [64]"));
  zoo = {.name = "gpt-2", .layers = 2};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.data: gpt-2 reads text; give data.text"));
  job.spec.trainer->data = {.text = TextData{.path = "a.txt", .window = 1025}};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.data.text.window: 1025 is more than the 1024 "
                          "positions of gpt-2; lower it"));
}

TEST(ValidationTest, RefusesToSynchroniseBatchNormsThatAreNotThere) {
  TrainingJob job = Digits();
  Model& model = job.spec.trainer->model;
  model.batch_norm = BatchNormOver::kSynchronised;
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  model.zoo->name = "lenet";
  model.zoo->dropout.reset();
  job.spec.trainer->data.csv->shape = {1, 16, 16};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.model.batchNorm: lenet has no batch norm: "
                          "leave it out"));
  model = {.custom = Custom{.name = "mine"}, .batch_norm = BatchNormOver::kSynchronised};
  job.spec.trainer->program = "trainer";
  EXPECT_THAT(ProblemLines(job), IsEmpty()) << "its program says what it has";
}

TEST(ValidationTest, ChecksTheTransformerAndItsData) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {.transformer = Transformer{.layers = 1, .heads = 3, .width = 64}};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("spec.trainer.data: the transformer reads text"),
                          HasSubstr("64 is not a multiple of heads (3)")));
  job = Digits();
  job.spec.trainer->data = {.text = TextData{.path = "a.txt"}};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("text is read by model.transformer and the zoo's gpt-2 "
                                    "alone; give data.csv")));
}

TEST(ValidationTest, TakesCustomPartsFromATrainerOfTheUsersOwnAlone) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {.custom = Custom{.name = "mine"}};
  job.spec.trainer->data = {.custom = Custom{.name = "mine"}};
  job.spec.trainer->optimizer = {.custom = CustomOptimizer{.name = "mine", .learning_rate = 1}};
  const auto refused = [](const std::string& field) {
    return "spec.trainer." + field +
           ".custom: only a trainer of your own knows it; name that in trainer.program";
  };
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(refused("model"), refused("data"), refused("optimizer")));
  job.spec.trainer->program = "build/trainer";
  EXPECT_THAT(ProblemLines(job), IsEmpty());
}

// What a data set of the user's own holds is known when the trainer has made it.
TEST(ValidationTest, LeavesTheShapesOfCustomPartsToTheTrainer) {
  TrainingJob job = Digits();
  job.spec.trainer->program = "build/trainer";
  job.spec.trainer->data = {.custom = Custom{.name = "mine"}};
  for (const Model& model : {Model{.zoo = Zoo{.name = "gpt-2"}}, Model{.zoo = Zoo{.name = "lenet"}},
                             Model{.transformer = Transformer{.layers = 1, .heads = 1, .width = 8}},
                             Model{.sequential = Sequential{.layers = {{.relu = Empty{}}}}}}) {
    job.spec.trainer->model = model;
    EXPECT_THAT(ProblemLines(job), IsEmpty());
  }
  job.spec.trainer->model = {.custom = Custom{.name = "mine"}};
  job.spec.trainer->data = {.text = TextData{.path = "a.txt"}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
}

TEST(ValidationTest, ChecksTheScheduleAndTheOptimizer) {
  TrainingJob job = Digits();
  job.spec.trainer->schedule = Schedule{.step_decay = StepDecay{.milestones = {5, 10, 10}}};
  job.spec.trainer->optimizer.sgd->nesterov = true;
  job.spec.trainer->optimizer.sgd->momentum = 0;
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre("spec.trainer.schedule.stepDecay.milestones[2]: 10 does not come after 10",
                  "spec.trainer.optimizer.sgd.nesterov: needs a momentum above 0"));
  job = Digits();
  job.spec.trainer->schedule =
      Schedule{.warmup_steps = 3,
               .cyclic = Cyclic{.epochs = 4, .rise_epochs = 4},
               .warmup = Warmup{.stepping = SteppingWarmup{.epochs = 5}},
               .weight_decay = {{.epoch = 2, .factor = 1}, {.epoch = 1, .factor = 2}}};
  job.spec.trainer->optimizer =
      Optimizer{.lamb = Lamb{.learning_rate = 0.1, .beta2 = 1}, .groups = {ParameterGroup{}}};
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre(
          "spec.trainer.schedule.warmupSteps: warmup says how it warms up already; keep one",
          "spec.trainer.schedule.cyclic.riseEpochs: 4 leaves nothing of the cycle's 4 epochs for "
          "the fall",
          "spec.trainer.schedule.weightDecay[1].epoch: 1 does not come after 2",
          "spec.trainer.optimizer.lamb.beta2: must be below 1",
          "spec.trainer.optimizer.groups[0]: means no parameter; say which by names or roles"));
}

TEST(ValidationTest, ChecksThatTheMetricIsMeasuredOnTheData) {
  TrainingJob job = Digits();
  const auto lines = [&](Metric metric) {
    job.spec.trainer->evaluation.metric = metric;
    return ProblemLines(job);
  };
  for (const Metric metric : {Metric::kLoss, Metric::kAccuracy, Metric::kTop5})
    EXPECT_THAT(lines(metric), IsEmpty());
  const std::string path = "spec.trainer.evaluation.metric: ";
  EXPECT_THAT(lines(Metric::kPerplexity),
              ElementsAre(path + "Perplexity is measured on text alone; take Loss"));
  EXPECT_THAT(lines(Metric::kAuroc),
              ElementsAre(path + "AUROC needs 2 classes, the data has 10; take Accuracy or Loss"));
  job.spec.trainer->data.csv->classes = 5;
  EXPECT_THAT(lines(Metric::kTop5),
              ElementsAre(path + "Top5 needs at least 6 classes, the data has 5; take Accuracy or "
                                 "Loss"));
  job.spec.trainer->data.csv->classes = 2;
  EXPECT_THAT(lines(Metric::kAuroc), IsEmpty());
  job.spec.trainer->model = {.transformer = Transformer{.layers = 1, .heads = 4, .width = 64}};
  job.spec.trainer->data = {.text = TextData{.path = "a.txt"}};
  EXPECT_THAT(lines(Metric::kPerplexity), IsEmpty());
  EXPECT_THAT(lines(Metric::kAuroc),
              ElementsAre(path + "AUROC is measured on 2 classes or independent labels, not on "
                                 "text; take Accuracy or Loss"));
}

TEST(ValidationTest, SeveralLabelsASampleNeedAScoreEach) {
  TrainingJob job = Digits();
  job.spec.trainer->data.csv->classes.reset();
  job.spec.trainer->data.csv->labels = 14;
  job.spec.trainer->evaluation.metric = Metric::kAuroc;
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  job.spec.trainer->evaluation.metric = Metric::kTop5;
  job.spec.trainer->label_smoothing = 0.1;
  job.spec.trainer->model = {
      .sequential =
          Sequential{.layers = {{.flatten = Empty{}}, {.linear = Linear{.features = 10}}}}};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.model.sequential.layers[1].linear.features: 10 scores for "
                          "14 labels (data.csv.labels); make them equal",
                          "spec.trainer.evaluation.metric: Top5 is measured on data with classes "
                          "alone; take AUROC, Accuracy or Loss",
                          "spec.trainer.labelSmoothing: spreads a label over classes, and "
                          "data.csv.labels has none; leave it out"));
}

TEST(ValidationTest, ChecksTheLossWithDataNetworkAndLabelSmoothing) {
  TrainingJob job = Digits();
  TrainerConfig& trainer = *job.spec.trainer;
  for (const LossFunction loss : {LossFunction::kCrossEntropy, LossFunction::kMeanSquare}) {
    trainer.loss = loss;
    EXPECT_THAT(ProblemLines(job), IsEmpty());
  }
  trainer.label_smoothing = 0.1;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.labelSmoothing: is CrossEntropy's alone, not "
                          "MeanSquare's; leave it out"));
  trainer.label_smoothing = 0;
  trainer.loss = LossFunction::kNegativeLogLikelihood;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.loss: NegativeLogLikelihood takes log-probabilities, and "
                          "the network ends with scores; take CrossEntropy, or end "
                          "model.sequential with logSoftmax"));
  trainer.model = {.sequential = Sequential{.layers = {{.flatten = Empty{}},
                                                       {.linear = Linear{.features = 10}},
                                                       {.log_softmax = Empty{}}}}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  trainer.data.csv->classes.reset();
  trainer.data.csv->labels = 10;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.loss: NegativeLogLikelihood is of classes, and "
                          "data.csv.labels has none; leave it out"));
}

TEST(ValidationTest, PerplexityIsNotMeasuredWithMeanSquare) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {.transformer = Transformer{.layers = 1, .heads = 4, .width = 64}};
  job.spec.trainer->data = {.text = TextData{.path = "a.txt"}};
  job.spec.trainer->evaluation.metric = Metric::kPerplexity;
  job.spec.trainer->loss = LossFunction::kMeanSquare;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.evaluation.metric: Perplexity is not measured "
                          "with MeanSquare; take Loss"));
}

TEST(ValidationTest, ChangesOfImagesFitTheImages) {
  TrainingJob job = Digits();
  const std::string path = "spec.trainer.data.images";
  Images& images = job.spec.trainer->data.images.emplace();
  images = {.size = {32, 32}, .crop = Crop{}, .mirror = true, .mean = {0.5}, .deviation = {0.25}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  images.size = {32};
  images.crop = Crop{.min_area = 0.5, .max_area = 0.25, .min_aspect = 2};
  images.mean = {1, 2, 3};
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre(path + ".size: give two numbers, the height and the width",
                  path + ".crop.minArea: 0.5 is more than maxArea (0.25); lower it",
                  path + ".crop.minAspect: 2 is more than maxAspect (1.3333333333333333); lower it",
                  path + ".mean: has 3 numbers for 1 channels; give one for each, or one for all"));
  images = {};
  job.spec.trainer->data.csv->shape = {64};
  EXPECT_THAT(ProblemLines(job),
              Contains(path + ": samples of shape [64] are no images, [channels, height, width]; "
                              "leave it out, or give data.csv.shape so"));
}

TEST(ValidationTest, ImagesAreJudgedByTheSizeThatTheNetworkSees) {
  TrainingJob job = Digits();
  job.spec.trainer->model.zoo->name = "alexnet";
  job.spec.trainer->data.images = Images{.size = {224, 224}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  job.spec.trainer->data.images->size = {32, 32};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("spec.trainer.data.images.size: images of [1, 32, 32] are too "
                                    "small for alexnet")));
}

TEST(ValidationTest, LayersAreJudgedByTheSizeThatTheyDoSee) {
  TrainingJob job = Digits();
  job.spec.trainer->model = {.sequential =
                                 Sequential{.layers = {{.max_pool = Pool{.kernel = 4}},
                                                       {.flatten = Empty{}},
                                                       {.linear = Linear{.features = 10}}}}};
  job.spec.trainer->data.images = Images{.size = {4, 4}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  job.spec.trainer->data.images->size = {3, 3};
  EXPECT_THAT(ProblemLines(job),
              ElementsAre(HasSubstr("spec.trainer.model.sequential.layers[0].maxPool")));
}

TEST(ValidationTest, ACollapseDoesWithoutTheCropThatThereIs) {
  TrainingJob job = Digits();
  job.spec.trainer->schedule.emplace().collapse = Collapse{.epochs = 1, .whole_images = true};
  EXPECT_THAT(
      ProblemLines(job),
      ElementsAre("spec.trainer.schedule.collapse.wholeImages: there is no data.images.crop "
                  "to do without; leave it out"));
  job.spec.trainer->data.images = Images{.crop = Crop{}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
}

TEST(ValidationTest, OnlyWeightsAreTakenInPart) {
  TrainingJob job = Digits();
  job.spec.trainer->start_from = StartFrom{.path = "main/checkpoints", .except = {"fc.*"}};
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  job.spec.trainer->start_from->take = StartFromTake::kEverything;
  EXPECT_THAT(ProblemLines(job),
              ElementsAre("spec.trainer.startFrom.except: is for Weights; leave it out, or take "
                          "Weights instead of Everything"));
}

TEST(ValidationTest, EarlyStopAndTheBestCheckpointNeedEvaluations) {
  TrainingJob job = Digits();
  job.spec.trainer->evaluation.early_stop = EarlyStop{.patience = 3};
  job.spec.checkpoint.keep_best = true;
  EXPECT_THAT(ProblemLines(job), IsEmpty());
  const auto expect = [&](const std::string& why) {
    EXPECT_THAT(ProblemLines(job), ElementsAre("spec.checkpoint.keepBest: " + why,
                                               "spec.trainer.evaluation.earlyStop: " + why));
  };
  job.spec.trainer->data.csv->hold_out_every = 0;
  expect("needs held-out samples; set data.csv.holdOutEvery, which is 0, above 0");
  job.spec.trainer->evaluation.every_epochs = 0;
  expect("needs evaluations on the way; set evaluation.everyEpochs, which is 0, above 0");
  job.spec.trainer.reset();
  job.spec.workers.template_ =
      Json::parse(R"({"spec": {"containers": [{"name": "worker", "command": ["x"]}]}})");
  EXPECT_THAT(ProblemLines(job),
              ::testing::Contains("spec.checkpoint.keepBest: goes by the evaluations of "
                                  "spec.trainer, which is missing"));
}

}  // namespace
}  // namespace ringmaster::api
