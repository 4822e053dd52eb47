// Condition types, reasons of conditions and of events: a closed set that scripts may match on.
#ifndef RINGMASTER_OPERATOR_RECONCILE_REASONS_H_
#define RINGMASTER_OPERATOR_RECONCILE_REASONS_H_

namespace ringmaster::reconcile {

// Types of conditions.
inline constexpr char kConditionPodsReady[] = "PodsReady";  // every wanted pod runs
inline constexpr char kConditionTraining[] = "Training";    // a round is in force
inline constexpr char kConditionDraining[] = "Draining";    // workers checkpoint, to leave
inline constexpr char kConditionSameBits[] = "SameBits";    // whoever computes what: the same bits
inline constexpr char kConditionResizing[] = "Resizing";    // workers checkpoint, to change number
inline constexpr char kConditionSuspended[] = "Suspended";  // no pods, because the spec says so
inline constexpr char kConditionCheckpoints[] = "CheckpointsHealthy";  // the last one is whole
inline constexpr char kConditionSucceeded[] = "Succeeded";
inline constexpr char kConditionFailed[] = "Failed";

// Reasons why the job ended.
inline constexpr char kReasonCompleted[] = "Completed";
inline constexpr char kReasonInvalidSpec[] = "InvalidSpec";
inline constexpr char kReasonPermanentError[] = "PermanentError";
inline constexpr char kReasonBudgetExhausted[] = "RestartBudgetExhausted";
inline constexpr char kReasonDeadlineExceeded[] = "DeadlineExceeded";
inline constexpr char kReasonStartDeadlineExceeded[] = "StartDeadlineExceeded";

// Reasons while it runs.
inline constexpr char kReasonPodsRunning[] = "PodsRunning";
inline constexpr char kReasonPodsStarting[] = "PodsStarting";
inline constexpr char kReasonUnschedulable[] = "Unschedulable";
inline constexpr char kReasonForbidden[] = "Forbidden";  // by a quota, a policy, a webhook
inline constexpr char kReasonNameTaken[] = "NameTaken";  // by what is not the job's
inline constexpr char kReasonPodGroupRefused[] = "PodGroupRefused";
inline constexpr char kReasonRoundStarted[] = "RoundStarted";
inline constexpr char kReasonWaitingForWorkers[] = "WaitingForWorkers";
inline constexpr char kReasonWorkerLost[] = "WorkerLost";
inline constexpr char kReasonWorkerLeaving[] = "WorkerLeaving";
inline constexpr char kReasonSameKernels[] = "SameKernels";
inline constexpr char kReasonOtherKernels[] = "OtherKernels";
inline constexpr char kReasonErrorFeedback[] = "ErrorFeedback";
inline constexpr char kReasonSuspending[] = "Suspending";
inline constexpr char kReasonSuspended[] = "Suspended";
inline constexpr char kReasonResumed[] = "Resumed";
inline constexpr char kReasonScalingUp[] = "ScalingUp";
inline constexpr char kReasonScalingDown[] = "ScalingDown";
inline constexpr char kReasonCheckpointCommitted[] = "CheckpointCommitted";
inline constexpr char kReasonCheckpointFailed[] = "CheckpointFailed";
inline constexpr char kReasonCheckpointRejected[] = "CheckpointRejected";

// Reasons of events alone.
inline constexpr char kReasonPodsCreated[] = "PodsCreated";
inline constexpr char kReasonServiceCreated[] = "ServiceCreated";
inline constexpr char kReasonPodGroupCreated[] = "PodGroupCreated";
inline constexpr char kReasonQueueIgnored[] = "QueueIgnored";
inline constexpr char kReasonExpired[] = "Expired";
inline constexpr char kReasonStoppedEarly[] = "StoppedEarly";
inline constexpr char kReasonStatusRefused[] = "StatusRefused";

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_REASONS_H_
