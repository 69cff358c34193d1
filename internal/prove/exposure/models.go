package exposure

// model is one thing that a hosted runner gives to every job, according to its
// documentation.
type model struct {
	column, check string
	level         Level
	what          string
	source        string
}

const (
	githubHosted   = "https://docs.github.com/en/actions/reference/runners/github-hosted-runners"
	githubToken    = "https://docs.github.com/en/actions/concepts/security/github_token"
	githubOIDC     = "https://docs.github.com/en/actions/concepts/security/openid-connect"
	githubSecurity = "https://docs.github.com/en/actions/reference/security/secure-use"
	githubCommands = "https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands"
	githubCheckout = "https://github.com/actions/checkout"
	githubImages   = "https://github.com/actions/runner-images"
	gitlabHosted   = "https://docs.gitlab.com/ci/runners/hosted_runners/linux/"
	gitlabToken    = "https://docs.gitlab.com/ci/jobs/ci_job_token/"
	gitlabNames    = "https://docs.gitlab.com/ci/variables/predefined_variables/"
	gitlabVars     = "https://docs.gitlab.com/ci/variables/"
	gitlabIDs      = "https://docs.gitlab.com/ci/secrets/id_token_authentication/"
	gitlabDocker   = "https://docs.gitlab.com/ci/docker/using_docker_build/"
)

// models is data: what the services document about their hosted Linux runners,
// with the defaults for a workflow that sets none of it.
var models = []model{
	{GitHub, "sudo", High, "passwordless sudo for every step", githubHosted},
	{GitHub, "group", High, "the runner's user may use Docker without sudo", githubImages},
	{GitHub, "docker-socket", High, "a Docker engine runs on the machine", githubImages},
	{GitHub, "ci-token", High, "GITHUB_TOKEN, in steps that ask for it", githubToken},
	{GitHub, "git-url", High, "actions/checkout leaves the token in the git configuration unless persist-credentials is false", githubCheckout},
	{GitHub, "ci-oidc", High, "where the job has id-token: write", githubOIDC},
	{GitHub, "ci-files", Medium, "GITHUB_ENV and GITHUB_PATH set the environment of later steps", githubCommands},
	{GitHub, "ci-secrets", Medium, "only secrets that the workflow names; with sudo, all that the job was sent", githubSecurity},
	{GitHub, "ci-worker", High, "Runner.Worker holds the job's secrets in its memory", githubSecurity},
	{GitHub, "metadata", Medium, "the machine is in Azure; its identity has no rights of yours", githubHosted},
	{GitHub, "userns", Info, "user namespaces are there, by AppArmor only for some programs", githubImages},
	{GitLab, "root", High, "jobs are root in a container, unless the image says otherwise", gitlabHosted},
	{GitLab, "capability", High, "the container is privileged: root of the virtual machine", gitlabHosted},
	{GitLab, "docker-socket", High, "Docker in Docker, where the job asks for that service", gitlabDocker},
	{GitLab, "ci-token", High, "CI_JOB_TOKEN and CI_REGISTRY_PASSWORD in every job", gitlabToken},
	{GitLab, "git-url", High, "CI_REPOSITORY_URL has the token in it, and so may the checkout's remote", gitlabNames},
	{GitLab, "ci-oidc", High, "where the job has id_tokens", gitlabIDs},
	{GitLab, "ci-secrets", High, "all variables of project and group that are not protected, in every job", gitlabVars},
	{GitLab, "metadata", Medium, "the machine is in Google Cloud", gitlabHosted},
}

// Models are the findings of a column that comes from the table of runners.
func Models(column string) []Finding {
	var out []Finding
	for _, m := range models {
		if m.column == column {
			out = append(out, Finding{Check: m.check, Column: column, Level: m.level, What: m.what, Source: m.source})
		}
	}
	return out
}
