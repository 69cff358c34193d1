package exposure

import (
	"slices"
	"strings"
)

// ciMarks are the variables that identify CI services.
var ciMarks = []struct{ variable, name string }{
	{"GITHUB_ACTIONS", "GitHub Actions"}, {"GITLAB_CI", "GitLab CI"}, {"BUILDKITE", "Buildkite"}, {"CIRCLECI", "CircleCI"}, {"JENKINS_URL", "Jenkins"},
	{"TF_BUILD", "Azure Pipelines"}, {"TEAMCITY_VERSION", "TeamCity"}, {"BITBUCKET_BUILD_NUMBER", "Bitbucket Pipelines"}, {"DRONE", "Drone"},
	{"WOODPECKER", "Woodpecker"}, {"CODEBUILD_BUILD_ID", "AWS CodeBuild"}, {"APPVEYOR", "AppVeyor"}, {"CIRRUS_CI", "Cirrus CI"}, {"TRAVIS", "Travis CI"}, {"FORGEJO_ACTIONS", "Forgejo Actions"},
}

// Service names the CI service that an environment indicates; "" for none.
// Forgejo and Gitea also call themselves GitHub Actions.
func Service(env []string) string {
	for _, m := range ciMarks {
		if slices.ContainsFunc(env, func(kv string) bool {
			name, value, _ := strings.Cut(kv, "=")
			return name == m.variable && value != "" && value != "false"
		}) {
			return m.name
		}
	}
	return ""
}

// jobToken is a variable in which a service provides its own credentials.
type jobToken struct{ name, check string }

var jobTokens = []jobToken{
	{"GITHUB_TOKEN", "ci-token"}, {"GH_TOKEN", "ci-token"}, {"ACTIONS_RUNTIME_TOKEN", "ci-token"}, {"CI_JOB_TOKEN", "ci-token"}, {"CI_REGISTRY_PASSWORD", "ci-token"}, {"CI_DEPLOY_PASSWORD", "ci-token"}, {"CI_DEPENDENCY_PROXY_PASSWORD", "ci-token"},
	{"CI_REPOSITORY_URL", "ci-token"}, {"SYSTEM_ACCESSTOKEN", "ci-token"}, {"BUILDKITE_AGENT_ACCESS_TOKEN", "ci-token"},
	{"ACTIONS_ID_TOKEN_REQUEST_URL", "ci-oidc"}, {"ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ci-oidc"}, {"CI_JOB_JWT", "ci-oidc"}, {"CI_JOB_JWT_V2", "ci-oidc"}, {"CIRCLE_OIDC_TOKEN", "ci-oidc"}, {"CIRCLE_OIDC_TOKEN_V2", "ci-oidc"}, {"BITBUCKET_STEP_OIDC_TOKEN", "ci-oidc"},
}
