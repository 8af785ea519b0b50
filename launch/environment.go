package launch

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The variables that Run sets for its workers. RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set as well, for programs
// that know only those.
const (
	rankVariable       = "GRADFUSION_RANK"
	sizeVariable       = "GRADFUSION_WORLD_SIZE"
	localRankVariable  = "GRADFUSION_LOCAL_RANK"
	localSizeVariable  = "GRADFUSION_LOCAL_WORLD_SIZE"
	rendezvousVariable = "GRADFUSION_RENDEZVOUS"  // host:port of the store; also overrides other launchers' address
	jobVariable        = "GRADFUSION_JOB"         // tells jobs apart
	tokenVariable      = "GRADFUSION_TOKEN"       // the job's secret
	listenerVariable   = "GRADFUSION_LISTENER_FD" // rank 0: descriptor of the store's listening socket
	parentVariable     = "GRADFUSION_PARENT_FD"   // descriptor of a pipe that ends with the launcher
)

// Place is what a process is in its job.
type Place struct {
	Rank, Size int
	// LocalRank of LocalSize on this host; 0 of 1 where the launcher does not say.
	LocalRank, LocalSize int
	Host                 string // where rank 0's store listens
	Port                 int
	Job                  string // name of the job, empty where the launcher has none
	Token                string // the job's secret; keep it out of logs
	Source               string // launcher, torchrun, mpirun, srun or kubernetes

	listener, parent int // descriptors, 0: none
}

// FromEnvironment reads the process's place from its environment. It returns
// false when no launcher has started the process, and an error that names the
// variables when they are incomplete or contradict each other. Where several
// launchers have left variables, the innermost wins: Run's own, torchrun-style,
// Open MPI, MPICH, Slurm. A Slurm step of one task counts as no launch.
func FromEnvironment(env func(string) string) (Place, bool, error) {
	r := &reader{env: env}
	var p Place
	switch {
	case r.any(rankVariable, sizeVariable):
		p = r.launcher()
	case r.any("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") && !r.mpi() && !r.slurm():
		p = r.torchrun()
	case r.any("RANK", "WORLD_SIZE"):
		p = r.torchrun()
		r.agree(p)
	case r.mpi():
		p = r.mpirun()
	case r.slurm():
		p = r.srun()
	default:
		return Place{}, false, nil
	}
	p.Token = env(tokenVariable)
	if at := env(rendezvousVariable); at != "" {
		p.Host, p.Port = r.hostPort(rendezvousVariable, at)
	}
	if r.err == nil {
		r.err = p.check()
	}
	if r.err != nil {
		return Place{}, false, r.err
	}
	return p, true, nil
}

func (p Place) check() error {
	switch {
	case p.Size < 1:
		return fmt.Errorf("%s environment: a world of %d ranks", p.Source, p.Size)
	case p.Rank < 0 || p.Rank >= p.Size:
		return fmt.Errorf("%s environment: rank %d is not one of %d ranks (0 to %d)", p.Source, p.Rank, p.Size, p.Size-1)
	case p.Port < 1:
		return fmt.Errorf("%s environment: port %d, where rank 0 is to be met, is no port that others know; give one from 1 to 65535", p.Source, p.Port)
	case p.LocalSize < 1 || p.LocalSize > p.Size:
		return fmt.Errorf("%s environment: %d ranks on this host of %d in the job", p.Source, p.LocalSize, p.Size)
	case p.LocalRank < 0 || p.LocalRank >= p.LocalSize:
		return fmt.Errorf("%s environment: local rank %d is not one of %d on this host", p.Source, p.LocalRank, p.LocalSize)
	}
	return nil
}

// reader reads variables and keeps the first error.
type reader struct {
	env func(string) string
	err error
}

func (r *reader) any(names ...string) bool {
	for _, n := range names {
		if r.env(n) != "" {
			return true
		}
	}
	return false
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// need reports an error that tells set from missing variables, unless all are set.
func (r *reader) need(source string, names ...string) {
	var set, missing []string
	for _, n := range names {
		if r.env(n) != "" {
			set = append(set, n)
		} else {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		r.fail("%s environment is incomplete: %s set, but not %s; set them all or none (or use -nproc to start workers here)",
			source, verb(set), strings.Join(missing, ", "))
	}
}

func verb(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

// number reads an integer variable; other is its value when it is not set.
func (r *reader) number(name string, other int) int {
	text := r.env(name)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		r.fail("environment: %s is %q, which is no number", name, text)
		return other
	}
	return n
}

func (r *reader) port(name string) int {
	n := r.number(name, 0)
	if n > 65535 {
		r.fail("environment: %s is %d, which is no port", name, n)
	}
	return n
}

func (r *reader) hostPort(name, text string) (string, int) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		r.fail("environment: %s is %q, which is not host:port", name, text)
		return "", 0
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		r.fail("environment: %s is %q, whose port is no port", name, text)
	}
	return host, n
}

func (r *reader) launcher() Place {
	r.need("launcher", rankVariable, sizeVariable, rendezvousVariable)
	return Place{
		Source:    "launcher",
		Rank:      r.number(rankVariable, 0),
		Size:      r.number(sizeVariable, 0),
		LocalRank: r.number(localRankVariable, 0),
		LocalSize: r.number(localSizeVariable, 1),
		Job:       r.env(jobVariable),
		listener:  r.number(listenerVariable, 0),
		parent:    r.number(parentVariable, 0),
	}
}
