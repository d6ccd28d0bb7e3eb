// Which user may do what, in which namespace.
#include <filesystem>
#include <fstream>
#include <future>

#include "base/tls/credentials.h"
#include "coordinator/service/access_file.h"
#include "coordinator/service/permissions.h"
#include "gmock/gmock.h"
#include "google/protobuf/dynamic_message.h"
#include "grpcpp/generic/generic_stub.h"
#include "mega/v1/worker.grpc.pb.h"
#include "tests/coordinator/service/fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/test_pki.h"

namespace mega::service {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<const MethodDescriptor*> MethodsOf(const std::string& service) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("mega.v1." + service);
  std::vector<const MethodDescriptor*> methods;
  for (int i = 0; i < descriptor->method_count(); ++i) methods.push_back(descriptor->method(i));
  return methods;
}

std::string ShortName(const MethodDescriptor& method) {
  return method.service()->name() + "." + method.name();
}

constexpr char kFile[] =
    "users:\n"
    "  ada: {'*': admin}\n"
    "  otto: {'*': operator}\n"
    "  sam: {research: submitter, lab: viewer}\n"
    "  vera: {research: viewer}\n"
    "  luis: {lab: submitter}\n";

TEST(Roles, TheHigherOfTwoThatCountDoes) {
  const auto roles = Roles::Parse("f", "users: {bob: {'*': viewer, research: submitter}}");
  ASSERT_TRUE(roles.ok()) << roles.status().ToString();
  EXPECT_EQ(roles->In("bob", "research"), Role::kSubmitter);
  EXPECT_EQ(roles->In("bob", "lab"), Role::kViewer);
  EXPECT_EQ(roles->Everywhere("bob"), Role::kViewer);
  EXPECT_EQ(roles->Highest("bob"), Role::kSubmitter);
  EXPECT_EQ(roles->In("eve", "lab"), Role::kNone);
  const auto wide = Roles::Parse("f", "users: {bob: {'*': admin, research: viewer}}");
  EXPECT_EQ(wide->In("bob", "research"), Role::kAdmin);
}

TEST(Roles, AllMistakesOfAFileComeAtOnceWithTheirPlaces) {
  const auto roles = Roles::Parse("access.yaml",
                                  "users:\n"
                                  "  ada: {'*': admn}\n"
                                  "  ada: {'*': admin}\n"
                                  "  no user: {'*': viewer}\n"
                                  "  bob: {Research: viewer, lab: [viewer], lab2: root}\n"
                                  "  cleo: {}\n"
                                  "  dan: viewer\n"
                                  "  eve: {research: operator}\n"
                                  "  finn: {lab: viewer, lab: submitter}\n"
                                  "user: {}\n");
  ASSERT_EQ(roles.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(roles.status().message()),
      AllOf(HasSubstr("access.yaml:2:14: users.ada.* is 'admn'; the roles are viewer, submitter, "
                      "operator and admin; did you mean admin?"),
            HasSubstr("access.yaml:3:3: users.ada is there twice; the first is in line 2"),
            HasSubstr("access.yaml:4:3: users.'no user' is no name of a user"),
            HasSubstr("access.yaml:5:9: users.bob.'Research' is no namespace"),
            HasSubstr("users.bob.lab is a list; the roles are"),
            HasSubstr("users.bob.lab2 is 'root'; the roles are"),
            HasSubstr("users.cleo is empty; write namespaces with roles"),
            HasSubstr("users.dan is 'viewer'; write namespaces with roles"),
            HasSubstr("users.eve.research is operator, which counts for all namespaces or not"),
            HasSubstr("users.finn.lab is there twice"),
            HasSubstr("access.yaml:10:1: 'user' is not a key; the one key is users; did you")));
  for (const char* nothing : {"", "users:", "users: {}", "roles: {}", "- a", "{", "a: b: c"})
    EXPECT_FALSE(Roles::Parse("f", nothing).ok()) << nothing;
}

TEST(AccessFile, AChangeCountsAndAMistakeDoesNot) {
  TempDir dir;
  const std::string path = dir.path() + "/access.yaml";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  EXPECT_THAT(AccessFile::Open(path).status().message(), HasSubstr(path));
  write("users: {ada: {'*': boss}}");
  EXPECT_THAT(AccessFile::Open(path).status().message(), HasSubstr("'boss'"));
  write("users: {ada: {'*': viewer}}");
  const auto file = AccessFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->roles()->Everywhere("ada"), Role::kViewer);

  write("users: {ada: {'*': boss}}");
  EXPECT_THAT((*file)->Look().message(), HasSubstr("'boss'"));
  EXPECT_EQ((*file)->roles()->Everywhere("ada"), Role::kViewer);
  write("users: {ada: {'*': admin}}");
  EXPECT_TRUE((*file)->Look().ok());
  EXPECT_EQ((*file)->roles()->Everywhere("ada"), Role::kAdmin);
  std::filesystem::remove(path);
  EXPECT_FALSE((*file)->Look().ok());
  EXPECT_EQ((*file)->roles()->Everywhere("ada"), Role::kAdmin);
}

TEST(Permissions, EveryMethodHasOneRowAndEveryRowAMethod) {
  std::vector<std::string> declared, written;
  for (const char* service : {"JobService", "ClusterService", "WorkerService"})
    for (const MethodDescriptor* method : MethodsOf(service))
      declared.push_back(ShortName(*method));
  for (const Permission& permission : kPermissions) written.emplace_back(permission.method);
  EXPECT_THAT(written, ::testing::UnorderedElementsAreArray(declared));
}

class AccessTest : public ServiceTest {
 protected:
  void SetUp() override {
    options_.identity = pki_.Coordinator();
    options_.access_file = dir_.path() + "/access.yaml";
    Write(kFile);
    StartCoordinator();
  }
  void Write(const std::string& text) { std::ofstream(options_.access_file) << text; }

  std::shared_ptr<grpc::Channel> As(const std::string& user) {
    auto& channel = channels_[user];
    if (channel == nullptr) {
      const auto identity = pki_.User(user);
      channel = grpc::CreateChannel(
          address(),
          tls::ChannelCredentials(identity.get(), {tls::PeerName::Kind::kCoordinator, ""}));
    }
    return channel;
  }
  std::unique_ptr<v1::JobService::Stub> Jobs(const std::string& user) {
    return v1::JobService::NewStub(As(user));
  }
  std::unique_ptr<v1::ClusterService::Stub> Cluster(const std::string& user) {
    return v1::ClusterService::NewStub(As(user));
  }
  grpc::Status SubmitAs(const std::string& user, const std::string& name,
                        const std::string& name_space, v1::Job* job) {
    v1::SubmitJobRequest request = Request(name);
    request.mutable_metadata()->set_namespace_(name_space);
    request.set_request_id(name + " in " + name_space);
    return Jobs(user)->SubmitJob(Context().get(), request, job);
  }
  v1::Job MustSubmitAs(const std::string& user, const std::string& name,
                       const std::string& name_space) {
    v1::Job job;
    const grpc::Status status = SubmitAs(user, name, name_space, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  std::vector<std::string> ListAs(const std::string& user, const std::string& parent = "") {
    v1::ListJobsRequest request;
    request.set_parent(parent);
    v1::ListJobsResponse list;
    const grpc::Status status = Jobs(user)->ListJobs(Context().get(), request, &list);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> names;
    for (const v1::Job& job : list.jobs()) names.push_back(job.metadata().name());
    return names;
  }
  grpc::Status GetAs(const std::string& user, const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    return Jobs(user)->GetJob(Context().get(), request, &job);
  }

  // Any method, of any shape, with a request that is about that job and its namespace. A stream
  // that is let through may go on for ever: whoever expects that looks at its beginning alone.
  grpc::Status CallAs(const std::string& user, const MethodDescriptor& method, const v1::Job& job,
                      bool may = false) {
    const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                               ->GetPrototype(method.input_type())
                                               ->New());
    const auto& reflection = *request->GetReflection();
    const auto* type = method.input_type();
    const bool is_about_jobs = method.service()->name() == "JobService";
    if (const auto* name = type->FindFieldByName("name"))
      reflection.SetString(request.get(), name, is_about_jobs ? job.uid() : "n1");
    if (const auto* parent = type->FindFieldByName("parent"))
      reflection.SetString(request.get(), parent, "namespaces/" + job.metadata().namespace_());
    if (const auto* metadata = type->FindFieldByName("metadata"))
      dynamic_cast<v1::JobMetadata&>(*reflection.MutableMessage(request.get(), metadata))
          .set_namespace_(job.metadata().namespace_());
    const grpc::Slice bytes(request->SerializeAsString());
    const grpc::ByteBuffer sent(&bytes, 1);
    grpc::ByteBuffer response;
    grpc::GenericStub stub(As(user));
    const auto context = Context();
    if (may && method.server_streaming())
      context->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
    std::promise<grpc::Status> done;
    stub.UnaryCall(context.get(), "/" + method.service()->full_name() + "/" + method.name(), {},
                   &sent, &response,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  mega::testing::TestPki pki_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

// Said again, and apart from the table that it holds against every call.
const std::map<std::string, std::string> kLowest = {{"JobService.SubmitJob", "sam"},
                                                    {"JobService.GetJob", "vera"},
                                                    {"JobService.ListJobs", "vera"},
                                                    {"JobService.CancelJob", "sam"},
                                                    {"JobService.WatchEvents", "vera"},
                                                    {"JobService.StreamLogs", "vera"},
                                                    {"JobService.StreamSteps", "vera"},
                                                    {"JobService.PlanJob", "vera"},
                                                    {"JobService.PauseJob", "sam"},
                                                    {"JobService.ResumeJob", "sam"},
                                                    {"JobService.RestartJob", "sam"},
                                                    {"JobService.ScaleJob", "sam"},
                                                    {"JobService.ListQueue", "vera"},
                                                    {"JobService.SaveCheckpoint", "sam"},
                                                    {"JobService.PinCheckpoint", "sam"},
                                                    {"JobService.DeleteCheckpoint", "sam"},
                                                    {"ClusterService.GetNode", "vera"},
                                                    {"ClusterService.ListNodes", "vera"},
                                                    {"ClusterService.GetVersion", "nobody"},
                                                    {"ClusterService.CordonNode", "otto"},
                                                    {"ClusterService.UncordonNode", "otto"},
                                                    {"ClusterService.DrainNode", "otto"},
                                                    {"ClusterService.ListNamespaces", "vera"},
                                                    {"ClusterService.UpdateNamespace", "ada"},
                                                    {"ClusterService.DeleteNamespace", "ada"},
                                                    {"ClusterService.WhoAmI", "nobody"},
                                                    {"ClusterService.ListAuditRecords", "ada"},
                                                    {"ClusterService.CaptureJournal", "ada"}};

TEST_F(AccessTest, EveryMethodIsRefusedBelowItsRoleAndLetThroughFromItOn) {
  const v1::Job job = MustSubmitAs("sam", "job", "research");
  for (const char* service : {"JobService", "ClusterService"}) {
    for (const MethodDescriptor* method : MethodsOf(service)) {
      ASSERT_EQ(kLowest.count(ShortName(*method)), 1u)
          << ShortName(*method) << " is in no line of kLowest: who may call it?";
      bool may = false;
      for (const char* user : {"nobody", "vera", "sam", "otto", "ada"}) {
        may = may || user == kLowest.at(ShortName(*method));
        const grpc::Status status = CallAs(user, *method, job, may);
        EXPECT_EQ(status.error_code() == grpc::StatusCode::PERMISSION_DENIED, !may)
            << user << " calls " << ShortName(*method) << ": " << status.error_code() << " "
            << status.error_message();
        if (may) continue;
        const google::rpc::ErrorInfo info = ErrorInfoOf(status);
        EXPECT_EQ(info.reason(), "ROLE_MISSING");
        EXPECT_EQ(info.metadata().at("method"), ShortName(*method));
      }
    }
  }
  // Of another namespace alone: as good as nobody, but for what belongs to none.
  for (const MethodDescriptor* method : MethodsOf("JobService")) {
    const grpc::StatusCode code = CallAs("luis", *method, job).error_code();
    EXPECT_THAT(code,
                ::testing::AnyOf(grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::NOT_FOUND))
        << method->name();
  }
}

TEST_F(AccessTest, ARefusalNamesTheRoleTheNeedAndWhoCanGiveIt) {
  const v1::Job job = MustSubmitAs("sam", "job", "research");
  v1::CancelJobRequest request;
  request.set_name(job.uid());
  v1::Job answer;
  grpc::Status status = Jobs("vera")->CancelJob(Context().get(), request, &answer);
  EXPECT_EQ(status.error_message(),
            "user 'vera' has the role viewer in namespace 'research', and JobService.CancelJob "
            "needs the role submitter there; who may write " +
                options_.access_file + " on the coordinator's machine can give it (admins: ada)");
  v1::Node node;
  status = Cluster("sam")->CordonNode(Context().get(), {}, &node);
  EXPECT_THAT(status.error_message(), HasSubstr("user 'sam' has no role in all namespaces"));
  status = SubmitAs("vera", "another", "lab", &answer);
  EXPECT_THAT(status.error_message(), HasSubstr("user 'vera' has no role in namespace 'lab'"));
  status = SubmitAs("nobody", "another", "lab", &answer);
  EXPECT_THAT(status.error_message(), HasSubstr("user 'nobody' has no role in any namespace"));
  status = SubmitAs("sam", "another", "lab", &answer);
  EXPECT_THAT(status.error_message(), HasSubstr("the role viewer in namespace 'lab'"));
  status = SubmitAs("sam", "another", "", &answer);
  EXPECT_THAT(status.error_message(), HasSubstr("no role in namespace 'default'"));
}

TEST_F(AccessTest, JobsOfOtherNamespacesAreAsIfTheyWereNotThere) {
  const v1::Job mine = MustSubmitAs("sam", "twin", "research");
  const v1::Job other = MustSubmitAs("luis", "twin", "lab");
  MustSubmitAs("luis", "secret", "lab");
  EXPECT_THAT(ListAs("vera"), ElementsAre("twin"));
  EXPECT_THAT(ListAs("sam"), ElementsAre("twin", "twin", "secret"));
  EXPECT_THAT(ListAs("otto"), ElementsAre("twin", "twin", "secret"));
  EXPECT_THAT(ListAs("sam", "namespaces/lab"), ElementsAre("twin", "secret"));

  // One name, two jobs: who sees one of them means that one.
  EXPECT_TRUE(GetAs("vera", "twin").ok());
  EXPECT_EQ(ErrorInfoOf(GetAs("sam", "twin")).reason(), "JOB_NAME_AMBIGUOUS");
  for (const std::string& name : {other.uid(), std::string("secret"), std::string("sec")}) {
    const grpc::Status status = GetAs("vera", name);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_THAT(status.error_message(),
                HasSubstr("' in the namespaces that you may look at (research)"));
  }
  // Of a namespace that is named, the answer is the same whether the job is there or not.
  for (const char* name : {"namespaces/lab/jobs/secret", "namespaces/lab/jobs/nothing"}) {
    EXPECT_THAT(GetAs("vera", name).error_message(), HasSubstr("no role in namespace 'lab'"));
  }

  v1::ListJobsRequest request;
  request.set_parent("namespaces/lab");
  v1::ListJobsResponse list;
  EXPECT_EQ(Jobs("vera")->ListJobs(Context().get(), request, &list).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  v1::ListQueueResponse queue;
  ASSERT_TRUE(Jobs("vera")->ListQueue(Context().get(), {}, &queue).ok());
  for (const v1::QueueEntry& entry : queue.entries())
    EXPECT_EQ(entry.metadata().namespace_(), "research");
  v1::ListNamespacesResponse namespaces;
  ASSERT_TRUE(testing::EventuallyWithin(kPatience, [&] {  // told at the next tick
    return Cluster("otto")->ListNamespaces(Context().get(), {}, &namespaces).ok() &&
           namespaces.namespaces_size() == 2;
  }));
  ASSERT_TRUE(Cluster("vera")->ListNamespaces(Context().get(), {}, &namespaces).ok());
  ASSERT_EQ(namespaces.namespaces_size(), 1);
  EXPECT_EQ(namespaces.namespaces(0).name(), "research");
}

TEST_F(AccessTest, EverybodyIsToldTheirRoles) {
  v1::WhoAmIResponse me;
  ASSERT_TRUE(Cluster("sam")->WhoAmI(Context().get(), {}, &me).ok());
  EXPECT_EQ(me.user(), "user:sam");
  EXPECT_THAT(me.roles(),
              UnorderedElementsAre(Pair("research", "submitter"), Pair("lab", "viewer")));
  ASSERT_TRUE(Cluster("nobody")->WhoAmI(Context().get(), {}, &me).ok());
  EXPECT_EQ(me.roles().size(), 0u);
}

TEST_F(AccessTest, ANewFileCountsWithoutARestart) {
  v1::Job job;
  EXPECT_FALSE(SubmitAs("vera", "job", "research", &job).ok());
  Write("users: {vera: {research: submitter}}");
  EXPECT_TRUE(testing::EventuallyWithin(
      kPatience, [&] { return SubmitAs("vera", "job", "research", &job).ok(); }));
  EXPECT_FALSE(GetAs("ada", "job").ok()) << "whom the file no longer names has no role";
}

TEST(Access, IsNothingOverPlainTextAndWithAWrongFile) {
  TempDir dir;
  CoordinatorOptions options;
  options.state_dir = dir.path() + "/state";
  options.access_file = dir.path() + "/access.yaml";
  std::ofstream(options.access_file) << kFile;
  EXPECT_THAT(Coordinator::Start(options).status().message(),
              HasSubstr("over plain text nobody is known"));
  options.identity = mega::testing::TestPki().Coordinator();
  std::ofstream(options.access_file) << "users: {ada: {'*': king}, bob: {'*': queen}}";
  EXPECT_THAT(std::string(Coordinator::Start(options).status().message()),
              AllOf(HasSubstr("'king'"), HasSubstr("'queen'")));
}

}  // namespace
}  // namespace mega::service
