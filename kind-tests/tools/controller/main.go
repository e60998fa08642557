// A controller with an API server of its own, as programs that are built with controller-runtime test
// themselves: envtest starts the server that it finds where kube-apiserver is looked for, and installs
// a type; a manager with leader election runs a reconciler; and a client plays everybody else.
//
// It ends with 0 when everything went as it does with a kube-apiserver.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// How long a step may take on a busy machine.
const patience = time.Minute

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	fmt.Println("all as expected")
}

func run(ctx context.Context) (err error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(version, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, version)

	env := &envtest.Environment{
		CRDInstallOptions:        envtest.CRDInstallOptions{CRDs: definitions(), MaxTime: patience},
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
	}
	config, err := env.Start()
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	fmt.Println("the API server runs, with the type")

	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "sites",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	reconciler := &Reconciler{
		Client: manager.GetClient(),
		Events: manager.GetEventRecorder("sites"),
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Site{}).
		Owns(&appsv1.Deployment{}).
		Complete(reconciler)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(inner) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return play(ctx, direct)
}

// play does what people and other controllers do, and looks at what comes of it.
func play(ctx context.Context, c client.Client) error {
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}}
	site.Spec.Replicas = 2
	wrong := site.DeepCopyObject().(*Site)
	wrong.Spec.Replicas = -1
	if err := c.Create(ctx, wrong); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a site that is none: %v", err)
	}
	if err := c.Create(ctx, site); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(site)
	deployment := &appsv1.Deployment{}
	replicas := func(count int32) func() error {
		return func() error {
			if err := c.Get(ctx, key, deployment); err != nil {
				return err
			}
			if *deployment.Spec.Replicas != count || !metav1.IsControlledBy(deployment, site) {
				return fmt.Errorf("%d replicas, owners %v", *deployment.Spec.Replicas, deployment.OwnerReferences)
			}
			return nil
		}
	}
	if err := eventually(ctx, "a Deployment of two", replicas(2)); err != nil {
		return err
	}

	// Nobody runs it here: its status is what its controller would write.
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 2, 2
	deployment.Status.ObservedGeneration = deployment.Generation
	if err := c.Status().Update(ctx, deployment); err != nil {
		return err
	}
	err := eventually(ctx, "the site to be ready", func() error {
		if err := c.Get(ctx, key, site); err != nil {
			return err
		}
		if site.Status.Ready != 2 || !meta.IsStatusConditionTrue(site.Status.Conditions, "Ready") {
			return fmt.Errorf("%+v", site.Status)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if generation := site.Generation; generation != 1 {
		return fmt.Errorf("writes of the status made generation %d", generation)
	}

	by := func(count int32) client.Patch {
		body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, count)
		return client.RawPatch(client.Merge.Type(), []byte(body))
	}
	if err := c.Patch(ctx, deployment, by(5)); err != nil {
		return err
	}
	if err := eventually(ctx, "a foreign change to be put back", replicas(2)); err != nil {
		return err
	}
	if err := c.Patch(ctx, site, by(3)); err != nil {
		return err
	}
	if err := eventually(ctx, "a Deployment of three", replicas(3)); err != nil {
		return err
	}
	err = eventually(ctx, "an event about the site", func() error {
		events := &corev1.EventList{}
		if err := c.List(ctx, events, client.InNamespace("default")); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.UID == site.UID && event.Reason == "Scaled" {
				return nil
			}
		}
		return fmt.Errorf("%d events, none of them", len(events.Items))
	})
	if err != nil {
		return err
	}

	if err := c.Delete(ctx, site); err != nil {
		return err
	}
	return eventually(ctx, "the site and its Deployment to go", func() error {
		for _, object := range []client.Object{&Site{}, &appsv1.Deployment{}} {
			if err := c.Get(ctx, key, object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T: %v", object, err)
			}
		}
		return nil
	})
}

// eventually waits until check has no error.
func eventually(ctx context.Context, what string, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, err, last)
	}
	fmt.Println(what)
	return nil
}
